// The AWS SDK for JavaScript v3: `node sdk.mjs TABLE` prints what it saw as JSON.
//
// The low-level client first (tables, waiters, errors, streams), then lib-dynamodb's document client.
import { randomUUID } from "node:crypto";
import {
  ConditionalCheckFailedException, CreateTableCommand, DeleteTableCommand,
  DescribeTimeToLiveCommand, DynamoDBClient, GetItemCommand, PutItemCommand,
  ResourceNotFoundException, TransactionCanceledException, UpdateTimeToLiveCommand,
  DescribeTableCommand, paginateListTables, waitUntilTableExists, waitUntilTableNotExists,
} from "@aws-sdk/client-dynamodb";
import {
  DescribeStreamCommand, DynamoDBStreamsClient, GetRecordsCommand, GetShardIteratorCommand,
} from "@aws-sdk/client-dynamodb-streams";
import {
  BatchGetCommand, BatchWriteCommand, DeleteCommand, DynamoDBDocument, DynamoDBDocumentClient,
  ExecuteStatementCommand, GetCommand, PutCommand, QueryCommand, ScanCommand, TransactGetCommand,
  TransactWriteCommand, UpdateCommand, NumberValue, paginateQuery, paginateScan,
} from "@aws-sdk/lib-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { refusal } from "./refusal.mjs";

const TableName = process.argv[2];
const client = new DynamoDBClient({});
const waiting = { client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 };
const seen = {};

async function tables() {
  const created = await client.send(new CreateTableCommand({
    TableName,
    AttributeDefinitions: [
      { AttributeName: "artist", AttributeType: "S" },
      { AttributeName: "song", AttributeType: "S" },
      { AttributeName: "genre", AttributeType: "S" },
      { AttributeName: "plays", AttributeType: "N" },
    ],
    KeySchema: [
      { AttributeName: "artist", KeyType: "HASH" },
      { AttributeName: "song", KeyType: "RANGE" },
    ],
    GlobalSecondaryIndexes: [{
      IndexName: "by-genre",
      KeySchema: [
        { AttributeName: "genre", KeyType: "HASH" },
        { AttributeName: "plays", KeyType: "RANGE" },
      ],
      Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: ["label"] },
    }],
    BillingMode: "PAY_PER_REQUEST",
    StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
  }));
  seen.createdIsDate = created.TableDescription.CreationDateTime instanceof Date;
  seen.waited = (await waitUntilTableExists(waiting, { TableName })).state;
  seen.listed = false;
  for await (const page of paginateListTables({ client, pageSize: 5 }, {})) {
    seen.listed ||= page.TableNames.includes(TableName);
  }
  await client.send(new UpdateTimeToLiveCommand({
    TableName, TimeToLiveSpecification: { Enabled: true, AttributeName: "expires" },
  }));
  const timeToLive = await client.send(new DescribeTimeToLiveCommand({ TableName }));
  seen.timeToLive = timeToLive.TimeToLiveDescription.AttributeName;
}

async function lowLevel() {
  const Item = { artist: { S: "Nina" }, song: { S: "Blob" }, data: { B: new Uint8Array([0, 255]) }, n: { NULL: true } };
  const put = await client.send(new PutItemCommand({ TableName, Item, ReturnConsumedCapacity: "INDEXES" }));
  seen.put = [put.$metadata.httpStatusCode, put.$metadata.requestId.length, put.ConsumedCapacity.Table.CapacityUnits];
  const got = await client.send(new GetItemCommand({ TableName, Key: { artist: Item.artist, song: Item.song } }));
  seen.bytes = Array.from(got.Item.data.B);
  const refused = await refusal(client.send(new PutItemCommand({
    TableName, Item, ConditionExpression: "attribute_not_exists(artist)",
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  })));
  seen.refused = [refused instanceof ConditionalCheckFailedException, refused.message, refused.Item.song.S];
  const missing = await refusal(client.send(new GetItemCommand({ TableName: "no-such-table", Key: { id: { S: "x" } } })));
  seen.missing = [missing instanceof ResourceNotFoundException, missing.$fault];
  const invalid = await refusal(client.send(new GetItemCommand({ TableName, Key: { artist: { S: "x" } } })));
  seen.invalid = [invalid.name, invalid.message];
}

async function documents() {
  const documents = DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    unmarshallOptions: { wrapNumbers: false },
  });
  const item = {
    artist: "Nina", song: "Sinnerman", genre: "jazz", plays: 7, label: "Philips", live: true, none: null,
    nested: { list: [1, "two", { three: 3 }], empty: {} }, tags: new Set(["a", "b"]), absent: undefined,
  };
  await documents.send(new PutCommand({ TableName, Item: item }));
  const key = { artist: "Nina", song: "Sinnerman" };
  const got = await documents.send(new GetCommand({ TableName, Key: key, ConsistentRead: true }));
  seen.document = { ...got.Item, tags: Array.from(got.Item.tags).sort() };
  const updated = await documents.send(new UpdateCommand({
    TableName, Key: key, ReturnValues: "UPDATED_NEW",
    UpdateExpression: "SET plays = plays + :one, #nested.#list[1] = :two ADD tags :tags REMOVE live",
    ExpressionAttributeNames: { "#nested": "nested", "#list": "list" },
    ExpressionAttributeValues: { ":one": 1, ":two": 2, ":tags": new Set(["c"]) },
  }));
  seen.updated = { plays: updated.Attributes.plays, tags: updated.Attributes.tags.size };

  await documents.send(new BatchWriteCommand({ RequestItems: { [TableName]: Array.from({ length: 20 }, (_, n) => ({
    PutRequest: { Item: { artist: "Bach", song: `BWV ${String(n).padStart(2, "0")}`, genre: "baroque", plays: n } },
  })) } }));
  const batch = await documents.send(new BatchGetCommand({
    RequestItems: { [TableName]: { Keys: [key, { artist: "Bach", song: "BWV 03" }, { artist: "?", song: "?" }] } },
  }));
  seen.batch = batch.Responses[TableName].map((found) => found.song).sort();

  const query = {
    TableName, KeyConditionExpression: "artist = :bach AND begins_with(song, :bwv)",
    ExpressionAttributeValues: { ":bach": "Bach", ":bwv": "BWV 1" },
  };
  const first = await documents.send(new QueryCommand({ ...query, Limit: 4, ScanIndexForward: false }));
  seen.first = [first.Items.map((found) => found.plays), first.LastEvaluatedKey];
  seen.pages = [];
  for await (const page of paginateQuery({ client: documents, pageSize: 4 }, query)) seen.pages.push(page.Count);
  const index = await documents.send(new QueryCommand({
    TableName, IndexName: "by-genre", KeyConditionExpression: "genre = :baroque AND plays >= :plays",
    ExpressionAttributeValues: { ":baroque": "baroque", ":plays": 18 },
  }));
  seen.index = index.Items;
  let scanned = 0;
  for await (const page of paginateScan({ client: documents, pageSize: 10 }, {
    TableName, FilterExpression: "plays < :five", ExpressionAttributeValues: { ":five": 5 },
  })) scanned += page.Count;
  seen.scanned = scanned;
  const segment = await documents.send(new ScanCommand({ TableName, Segment: 0, TotalSegments: 1, Select: "COUNT" }));
  seen.counted = segment.Count;
  const removed = await documents.send(new DeleteCommand({ TableName, Key: key, ReturnValues: "ALL_OLD" }));
  seen.removed = removed.Attributes.plays;
}

async function transactions() {
  const documents = DynamoDBDocument.from(client, { unmarshallOptions: { wrapNumbers: true } });
  const ada = { artist: "Ada", song: "one" };
  await documents.send(new TransactWriteCommand({
    ClientRequestToken: randomUUID(),
    TransactItems: [
      { Put: { TableName, Item: { ...ada, big: NumberValue.from("12345678901234567890123456789012345678") } } },
      { Update: {
        TableName, Key: { artist: "Bach", song: "BWV 01" }, UpdateExpression: "SET plays = :hundred",
        ExpressionAttributeValues: { ":hundred": 100 },
      } },
    ],
  }));
  const got = await documents.send(new TransactGetCommand({ TransactItems: [
    { Get: { TableName, Key: ada } }, { Get: { TableName, Key: { artist: "?", song: "?" } } },
  ] }));
  seen.big = got.Responses[0].Item.big.toString();
  seen.nothing = got.Responses[1];
  const canceled = await refusal(documents.transactWrite({ TransactItems: [
    { ConditionCheck: { TableName, Key: ada, ConditionExpression: "attribute_not_exists(artist)" } },
    { Delete: { TableName, Key: { artist: "Bach", song: "BWV 01" } } },
  ] }));
  seen.canceled = [
    canceled instanceof TransactionCanceledException, canceled.message,
    canceled.CancellationReasons.map((reason) => reason.Code),
  ];
  const statement = await documents.send(new ExecuteStatementCommand({
    Statement: `SELECT song FROM "${TableName}" WHERE artist = ? AND song < ?`, Parameters: ["Bach", "BWV 02"],
  }));
  seen.statement = statement.Items;
}

async function streams() {
  const reader = new DynamoDBStreamsClient({});
  const { Table } = await client.send(new DescribeTableCommand({ TableName }));
  const { StreamDescription } = await reader.send(new DescribeStreamCommand({ StreamArn: Table.LatestStreamArn }));
  const events = [];
  for (const shard of StreamDescription.Shards) {
    const { ShardIterator } = await reader.send(new GetShardIteratorCommand({
      StreamArn: Table.LatestStreamArn, ShardId: shard.ShardId, ShardIteratorType: "TRIM_HORIZON",
    }));
    const { Records } = await reader.send(new GetRecordsCommand({ ShardIterator }));
    for (const record of Records) {
      const { song, artist } = unmarshall(record.dynamodb.Keys);
      if (artist === "Nina") events.push([record.eventName, song, record.dynamodb.ApproximateCreationDateTime instanceof Date]);
    }
  }
  seen.events = events;
}

async function deletion() {
  await client.send(new DeleteTableCommand({ TableName }));
  seen.gone = (await waitUntilTableNotExists(waiting, { TableName })).state;
}

for (const chapter of [tables, lowLevel, documents, transactions, streams, deletion]) await chapter();
console.log(JSON.stringify(seen));
