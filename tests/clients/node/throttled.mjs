// Puts items until a put is throttled for good: the SDK's own retries see a clock that stands still.
import { CreateTableCommand, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";

const client = new DynamoDBClient({ maxAttempts: 3 });
const TableName = process.argv[2];
await client.send(
  new CreateTableCommand({
    TableName,
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
    ProvisionedThroughput: { ReadCapacityUnits: 1, WriteCapacityUnits: 2 },
  }),
);
const attempts = [];
for (let number = 0; ; number++) {
  const put = new PutItemCommand({ TableName, Item: { pk: { S: String(number) } } });
  try {
    attempts.push((await client.send(put)).$metadata.attempts);
  } catch (error) {
    const { name, ThrottlingReasons: reasons, $metadata: metadata, $retryable: retryable } = error;
    console.log(JSON.stringify({ attempts, name, reasons, failed: metadata.attempts, retryable: retryable ?? null }));
    break;
  }
}
