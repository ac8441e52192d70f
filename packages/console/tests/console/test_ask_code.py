"""Requests as code."""

from __future__ import annotations

import pytest

from hashrange_console import code


@pytest.mark.parametrize("operation", ["ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"])
def test_requests_of_streams_use_the_clients_of_streams(operation: str) -> None:
    texts = dict(code.snippets(operation, {}, "http://127.0.0.1:8000"))
    assert 'boto3.client("dynamodbstreams"' in texts["boto3 (Python)"]
    assert "aws dynamodbstreams " in texts["AWS CLI"]
    assert '"@aws-sdk/client-dynamodb-streams"' in texts["AWS SDK for JavaScript v3"]
    assert "new DynamoDBStreamsClient(" in texts["AWS SDK for JavaScript v3"]
