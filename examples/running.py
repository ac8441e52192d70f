"""What the examples share: a database, and a server.

Without ENDPOINT an example opens an embedded Hashrange in its own process, durable in DATA_DIR, or in memory
where DATA_DIR is empty. `ENDPOINT=http://localhost:8000` names a server, `ENDPOINT=aws` the real service in
the region and with the credentials of the environment.
"""

from __future__ import annotations

import os
from typing import Any

import boto3
import uvicorn
from botocore.config import Config
from starlette.applications import Starlette

from hashrange.client import connect
from hashrange.database import Database
from hashrange_patterns import Index, Table

ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})  # the patterns repeat where that is safe


def client_of_environment() -> Any:
    """The client that the environment asks for."""
    endpoint, data_dir = os.environ.get("ENDPOINT"), os.environ.get("DATA_DIR")
    if endpoint == "aws":
        return boto3.client("dynamodb", config=ONE_ATTEMPT)
    if endpoint:
        return boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=ONE_ATTEMPT,
        )
    return connect(Database.open(data_dir) if data_dir else Database.in_memory())


def make_table(client: Any, table: Table, *indexes: Index) -> bool:
    """Make the table; False if it was there."""
    try:
        client.create_table(**table.definition(*indexes))
    except client.exceptions.ResourceInUseException:
        return False
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    client.update_time_to_live(**table.time_to_live())
    return True


def serve(app: Starlette) -> None:
    """Serve `app` until Ctrl-C, at PORT."""
    port = int(os.environ.get("PORT", "8080"))
    print(f"http://localhost:{port}")
    uvicorn.run(app, port=port, log_level="warning")
