// The AWS SDK for JavaScript v3 with a server that speaks TLS: `node encrypted.mjs TABLE` prints what it saw.
import {
  CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand, waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";

const TableName = process.argv[2];
const client = new DynamoDBClient({});
await client.send(new CreateTableCommand({
  TableName,
  AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
  KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
  BillingMode: "PAY_PER_REQUEST",
}));
await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName });
await client.send(new PutItemCommand({ TableName, Item: { id: { S: "a" }, text: { S: "x".repeat(100000) } } }));
const { Item } = await client.send(new GetItemCommand({ TableName, Key: { id: { S: "a" } } }));
console.log(JSON.stringify({ length: Item.text.S.length }));
