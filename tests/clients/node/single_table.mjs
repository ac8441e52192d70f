// The table that clients for single-table designs expect: pk and sk, and an overloaded index gsi1.
import { CreateTableCommand, DynamoDBClient, waitUntilTableExists } from "@aws-sdk/client-dynamodb";

const attributes = (types) => Object.entries(types).map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType }));
const keys = (names, KeyType) => names.map((AttributeName) => ({ AttributeName, KeyType }));
const index = (IndexName, partition, sort) => ({
  IndexName, KeySchema: [...keys(partition, "HASH"), ...keys(sort, "RANGE")], Projection: { ProjectionType: "ALL" },
});

// `gsi2` is an index over attributes of the entities themselves: the types of its partition and its sort keys.
export async function createSingleTable(TableName, gsi2) {
  const client = new DynamoDBClient({});
  await client.send(new CreateTableCommand({
    TableName,
    AttributeDefinitions: attributes({ pk: "S", sk: "S", gsi1pk: "S", gsi1sk: "S", ...gsi2.partition, ...gsi2.sort }),
    KeySchema: [...keys(["pk"], "HASH"), ...keys(["sk"], "RANGE")],
    GlobalSecondaryIndexes: [
      index("gsi1", ["gsi1pk"], ["gsi1sk"]),
      index("gsi2", Object.keys(gsi2.partition), Object.keys(gsi2.sort)),
    ],
    BillingMode: "PAY_PER_REQUEST",
  }));
  await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName });
  return client;
}
