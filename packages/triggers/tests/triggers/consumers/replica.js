// Keeps a copy of a table by the package dynamodb-stream, and prints it as JSON for each line on stdin.
const readline = require('readline')
const DynamoDBStream = require('dynamodb-stream')
const { DynamoDBStreams } = require('@aws-sdk/client-dynamodb-streams')
const { unmarshall } = require('@aws-sdk/util-dynamodb')

const [endpoint, arn] = process.argv.slice(2)
const credentials = { accessKeyId: 'any', secretAccessKey: 'any' }
const stream = new DynamoDBStream(new DynamoDBStreams({ endpoint, region: 'us-east-1', credentials }), arn, unmarshall)

const copy = {}
stream.on('insert record', (item) => { copy[item.id] = item })
stream.on('modify record', (item) => { copy[item.id] = item })
stream.on('remove record', (item, keys) => { delete copy[(keys ?? item).id] })

async function main() {
  await stream.fetchStreamState()
  console.log('ready')
  for await (const _ of readline.createInterface({ input: process.stdin })) {
    await stream.fetchStreamState()
    console.log(JSON.stringify(copy))
  }
}

main().catch((error) => { console.error(error); process.exit(1) })
