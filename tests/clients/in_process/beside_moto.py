"""moto and a block in one test: DynamoDB is answered by the block, the rest by moto, in either order."""

import json

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

import hashrange

REGION = {"region_name": "us-east-1"}
early = boto3.client("dynamodb", **REGION)
KEY = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def use() -> dict[str, object]:
    s3 = boto3.client("s3", **REGION)
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="key", Body=b"body")
    table = boto3.resource("dynamodb", **REGION).create_table(TableName="things", **KEY)
    early.put_item(TableName="things", Item={"pk": {"S": "a"}})
    try:
        early.put_item(TableName="things", Item={"pk": {"S": ""}})
        refused = ""
    except ClientError as error:
        refused = error.response["Error"]["Message"]
    return {
        "object": s3.get_object(Bucket="bucket", Key="key")["Body"].read().decode(),
        "arn": table.table_arn,
        "count": early.scan(TableName="things")["Count"],
        "refused": refused[:40],
    }


with mock_aws(), hashrange.local():
    inside = use()
with hashrange.local(), mock_aws():
    outside = use()
with mock_aws():
    arn = boto3.resource("dynamodb", **REGION).create_table(TableName="mocks", **KEY).table_arn

print(json.dumps({"inside": inside, "outside": outside, "motos_own": arn}))
