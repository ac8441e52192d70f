"""python-dynamodb-lock, whose heartbeats come from threads of its own."""

import datetime
import json

import boto3
from python_dynamodb_lock.python_dynamodb_lock import DynamoDBLockClient, DynamoDBLockError

import hashrange

with hashrange.local() as database:
    resource = boto3.resource("dynamodb")
    DynamoDBLockClient.create_dynamodb_table(resource.meta.client)
    first, second = (
        DynamoDBLockClient(resource, heartbeat_period=datetime.timedelta(seconds=0.2)) for _ in range(2)
    )
    lock = first.acquire_lock("job")
    record = database.execute("Scan", {"TableName": "DynamoDBLockTable"})["Items"][0]["record_version_number"]
    beaten = record
    while beaten == record:  # until the thread has renewed the lease
        beaten = database.execute("Scan", {"TableName": "DynamoDBLockTable"})["Items"][0][
            "record_version_number"
        ]
    try:
        second.acquire_lock("job", retry_timeout=datetime.timedelta(seconds=0.1))
        refused = ""
    except DynamoDBLockError as error:
        refused = error.code
    lock.release()
    with second.acquire_lock("job") as again:
        owner = again.owner_name == second._owner_name
    for client in (first, second):
        client.close(release_locks=True)
    left = database.execute("Scan", {"TableName": "DynamoDBLockTable"})["Count"]

print(json.dumps({"refused": refused, "owner": owner, "left": left}))
