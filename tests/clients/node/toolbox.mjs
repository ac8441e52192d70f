// DynamoDB-Toolbox, as its guide uses it: `node toolbox.mjs TABLE` prints what it saw as JSON.
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import {
  $add, $append, $remove, BatchDeleteRequest, BatchGetCommand, BatchGetRequest, BatchPutRequest, BatchWriteCommand,
  ConditionCheck, DeleteItemCommand, DeletePartitionCommand, Entity, GetItemCommand, GetTransaction, PutItemCommand,
  PutTransaction, QueryCommand, ScanCommand, Table, UpdateItemCommand, UpdateTransaction, executeBatchGet,
  executeBatchWrite, executeTransactGet, executeTransactWrite, item, list, map, number, prefix, set, string,
} from "dynamodb-toolbox";
import { refusal } from "./refusal.mjs";
import { createSingleTable } from "./single_table.mjs";

const name = process.argv[2];
const client = await createSingleTable(name, { partition: { gsi1pk: "S", level: "N" }, sort: { gsi1sk: "S" } });
const seen = {};

const PokeTable = new Table({
  name,
  documentClient: DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } }),
  partitionKey: { name: "pk", type: "string" },
  sortKey: { name: "sk", type: "string" },
  indexes: {
    gsi1: {
      type: "global", partitionKey: { name: "gsi1pk", type: "string" }, sortKey: { name: "gsi1sk", type: "string" },
    },
    gsi2: {
      type: "global", sortKeys: [{ name: "gsi1sk", type: "string" }],
      partitionKeys: [{ name: "gsi1pk", type: "string" }, { name: "level", type: "number" }],
    },
  },
});

const Pokemon = new Entity({
  name: "Pokemon",
  table: PokeTable,
  schema: item({
    trainer: string().key().savedAs("pk").transform(prefix("TRAINER")),
    name: string().key().savedAs("sk").transform(prefix("POKEMON")),
    kind: string().enum("fire", "water", "electric").savedAs("gsi1pk"),
    code: string().savedAs("gsi1sk"),
    level: number().default(1),
    types: set(string()).optional(),
    moves: list(map({ name: string(), power: number() })).default([]),
    note: string().optional(),
  }),
});

const key = { trainer: "ash", name: "pikachu" };
const pikachu = { ...key, kind: "electric", code: "025", types: new Set(["mouse"]), note: "yellow" };
const others = Array.from({ length: 12 }, (_, n) => ({
  trainer: "misty", name: `starmie${String(n).padStart(2, "0")}`, kind: "water", code: String(100 + n), level: n,
}));

async function items() {
  const put = await Pokemon.build(PutItemCommand).item(pikachu)
    .options({ condition: { attr: "name", exists: false } }).send();
  seen.put = put.$metadata.httpStatusCode;
  const refused = await refusal(Pokemon.build(PutItemCommand).item(pikachu)
    .options({ condition: { attr: "name", exists: false } }).send());
  seen.refused = refused.name;
  const updated = await Pokemon.build(UpdateItemCommand)
    .item({ ...key, level: $add(4), moves: $append([{ name: "thunder", power: 110 }]), types: $add(new Set(["cute"])), note: $remove() })
    .options({ returnValues: "ALL_NEW", condition: { attr: "level", lt: 10 } }).send();
  seen.updated = { ...updated.Attributes, types: [...updated.Attributes.types].sort(), created: undefined, modified: undefined };
  const got = await Pokemon.build(GetItemCommand).key(key).options({ consistent: true, attributes: ["level", "moves"] }).send();
  seen.got = got.Item;
}

async function batches() {
  const written = await executeBatchWrite(
    PokeTable.build(BatchWriteCommand).requests(...others.map((other) => Pokemon.build(BatchPutRequest).item(other))),
  );
  seen.unprocessed = Object.keys(written.UnprocessedItems ?? {}).length;
  await executeBatchWrite(
    PokeTable.build(BatchWriteCommand).requests(Pokemon.build(BatchDeleteRequest).key(others[11])),
  );
  const { Responses } = await executeBatchGet(
    PokeTable.build(BatchGetCommand).requests(...[others[0], others[11]].map((other) => Pokemon.build(BatchGetRequest).key(other))),
  );
  seen.batch = Responses[0].map((found) => found?.name ?? null);
}

async function queries() {
  const query = PokeTable.build(QueryCommand).entities(Pokemon)
    .query({ partition: "TRAINER#misty", range: { beginsWith: "POKEMON#starmie" } });
  const first = await query.options({ limit: 4, filters: { Pokemon: { attr: "level", gte: 2 } } }).send();
  seen.first = [first.Items.map((found) => found.name), first.LastEvaluatedKey];
  seen.all = (await query.options({ limit: 4, maxPages: Infinity, reverse: true }).send()).Items.length;
  const index = await PokeTable.build(QueryCommand).entities(Pokemon)
    .query({ index: "gsi1", partition: "water", range: { between: ["102", "104"] } }).send();
  seen.index = index.Items.map((found) => found.code);
  const levels = await PokeTable.build(QueryCommand).entities(Pokemon)
    .query({ index: "gsi2", partition: ["water", 3], range: [{ gte: "100" }] }).send();
  seen.levels = levels.Items.map((found) => found.name);
  const scanned = await PokeTable.build(ScanCommand).entities(Pokemon).options({ maxPages: Infinity, limit: 5 }).send();
  seen.scanned = scanned.Items.length;
}

async function transactions() {
  const [written] = [await executeTransactWrite(
    Pokemon.build(ConditionCheck).key(key).condition({ attr: "level", eq: 5 }),
    Pokemon.build(UpdateTransaction).item({ ...others[0], level: 50 }),
    Pokemon.build(PutTransaction).item({ ...key, name: "eevee", kind: "fire", code: "133" }),
  )];
  seen.written = written.$metadata.httpStatusCode;
  const { Responses } = await executeTransactGet(
    Pokemon.build(GetTransaction).key(others[0]), Pokemon.build(GetTransaction).key({ ...key, name: "eevee" }),
  );
  seen.transacted = Responses.map(({ Item }) => Item.level);
  const canceled = await refusal(executeTransactWrite(
    Pokemon.build(UpdateTransaction).item({ ...others[0], level: 51 }),
    Pokemon.build(ConditionCheck).key(key).condition({ attr: "level", eq: 6 }),
  ));
  seen.canceled = [canceled.name, canceled.CancellationReasons.map((reason) => reason.Code)];
}

async function deletions() {
  const removed = await Pokemon.build(DeleteItemCommand).key(key).options({ returnValues: "ALL_OLD" }).send();
  seen.removed = removed.Attributes.name;
  await PokeTable.build(DeletePartitionCommand).entities(Pokemon).query({ partition: "TRAINER#misty" }).send();
  const left = await PokeTable.build(ScanCommand).entities(Pokemon).send();
  seen.left = left.Items.map((found) => found.name);
}

for (const chapter of [items, batches, queries, transactions, deletions]) await chapter();
console.log(JSON.stringify(seen));
