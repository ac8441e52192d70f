// The table that clients for single-table designs expect: pk and sk, and an overloaded index gsi1.
import { CreateTableCommand, DynamoDBClient, waitUntilTableExists } from "@aws-sdk/client-dynamodb";

export async function createSingleTable(TableName) {
  const client = new DynamoDBClient({});
  const keys = (pk, sk) => [{ AttributeName: pk, KeyType: "HASH" }, { AttributeName: sk, KeyType: "RANGE" }];
  await client.send(new CreateTableCommand({
    TableName,
    AttributeDefinitions: ["pk", "sk", "gsi1pk", "gsi1sk"].map((name) => ({ AttributeName: name, AttributeType: "S" })),
    KeySchema: keys("pk", "sk"),
    GlobalSecondaryIndexes: [
      { IndexName: "gsi1", KeySchema: keys("gsi1pk", "gsi1sk"), Projection: { ProjectionType: "ALL" } },
    ],
    BillingMode: "PAY_PER_REQUEST",
  }));
  await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName });
  return client;
}
