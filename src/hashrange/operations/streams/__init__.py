"""DynamoDB Streams: the operations that read a table's changes."""
