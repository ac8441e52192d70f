// Reads one shard by the package dynamodb-streams-readable, and prints each record's event and key, until closed.
const AWS = require('aws-sdk')
const readable = require('dynamodb-streams-readable')

const [endpoint, arn, shardId, wanted] = process.argv.slice(2)
const credentials = { accessKeyId: 'any', secretAccessKey: 'any' }
const client = new AWS.DynamoDBStreams({ endpoint, region: 'us-east-1', credentials })
const stream = readable(client, arn, { shardId, limit: 3 })

let seen = 0
stream
  .on('data', (records) => {
    for (const record of records) console.log(record.eventName, record.dynamodb.Keys.id.S)
    seen += records.length
    if (seen >= Number(wanted)) stream.close()
  })
  .on('checkpoint', (sequenceNumber) => console.log('checkpoint', sequenceNumber))
  .on('error', (error) => { console.error(error); process.exit(1) })
  .on('end', () => process.exit(0))
