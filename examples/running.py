"""What the examples share: a database, a server, and answers to bad input.

Without ENDPOINT an example opens an embedded Hashrange in its own process, durable in DATA_DIR, or in memory
where DATA_DIR is empty. `ENDPOINT=http://localhost:8000` names a server, `ENDPOINT=aws` the real service in
the region and with the credentials of the environment.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import boto3
import uvicorn
from botocore.config import Config
from botocore.exceptions import ClientError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

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
    database = Database.open(data_dir) if data_dir else Database.in_memory()
    return connect(database, config=ONE_ATTEMPT)


def make_table(client: Any, table: Table, *indexes: Index) -> bool:
    """Make the table; False if it was there."""
    try:
        client.create_table(**table.definition(*indexes))
    except client.exceptions.ResourceInUseException:
        return False
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    client.update_time_to_live(**table.time_to_live())
    return True


def application(
    routes: Sequence[Route], refusals: Mapping[type[Exception], int] | None = None, **options: Any
) -> Starlette:
    """An application that says in words why it refuses a request: with the status of `refusals`, or with 400
    for what cannot be read, or is no value that DynamoDB takes."""

    async def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, ClientError):
            response: Any = error.response
            reasons = [reason.get("Code") for reason in response.get("CancellationReasons", [])]
            if response["Error"]["Code"] != "ValidationException" and "ValidationError" not in reasons:
                raise error
        status = next((code for kind, code in (refusals or {}).items() if isinstance(error, kind)), 400)
        words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        return JSONResponse({"error": words}, status)

    kinds = [ValueError, KeyError, TypeError, AttributeError, ClientError, *(refusals or ())]
    return Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, refused), **options)


def posted(work: Callable[[dict[str, str]], Any]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that performs `work` on a form."""

    async def endpoint(request: Request) -> Response:
        form = await request.json()
        if not isinstance(form, dict):
            raise ValueError("an object is expected")
        texts = {name: str(value) for name, value in form.items()}
        return JSONResponse({"done": await run_in_threadpool(work, texts)})

    return endpoint


def serve(app: Starlette) -> None:
    """Serve `app` until Ctrl-C, at PORT."""
    port = int(os.environ.get("PORT", "8080"))
    print(f"http://localhost:{port}")
    uvicorn.run(app, port=port, log_level="warning")
