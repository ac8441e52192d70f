"""Kinesis, or a server that speaks its protocol, through boto3.

boto3 finds credentials in the environment, the files of the AWS CLI, or a role. Without any, requests to an
endpoint other than AWS are signed with made-up ones, because such servers accept all.

Each request has a deadline, and is made once: the background work tries again. Refuses to know what the
records hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

AWS: Final = "aws"
"""The value of the endpoint that means AWS itself."""

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 5

RECORDS_MAX: Final = 500
"""The most records of a request."""

BYTES_MAX: Final = 1_000_000
"""The most bytes of records in a request, of which a single record may have more. Kinesis takes five times as
much, but to encode it would keep other threads from running for too long."""

NO_STREAM: Final = "User does not have a permission to use kinesis stream"
_OTHER_STREAM: Final = (
    "The kinesis Arn used to enable kinesis replication belongs to a stream which is not in "
)
NOT_ACTIVE: Final = f"{_OTHER_STREAM}Active state"
OTHER_REGION: Final = f"{_OTHER_STREAM}the current region"

_STREAM_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:kinesis:([a-z0-9-]+):[0-9]*:stream/([a-zA-Z0-9_.-]{1,128})"
).fullmatch
# Kinesis refuses a record that is too large with the first; some of its likes use the second.
_REFUSALS: Final = frozenset(("ValidationException", "InvalidArgumentException"))
_ABSENT: Final = frozenset(("ResourceNotFoundException",))
_DENIED: Final = frozenset(("AccessDeniedException",))
_MADE_UP: Final = "hashrange"


class KinesisError(Exception):
    """A request to Kinesis failed; it may be tried again."""


class Refused(Exception):
    """Kinesis does not take these records, and will not take them later."""


class StreamName(NamedTuple):
    """The region and the name of a Kinesis data stream."""

    region: str
    name: str


def parse(arn: str) -> StreamName | None:
    """The stream that an ARN names; None if it is not the ARN of a stream."""
    parsed = _STREAM_ARN(arn)
    return StreamName(*parsed.groups()) if parsed is not None else None


class Kinesis:
    """The streams at `endpoint`: a URL, or `AWS`. Not thread-safe."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._clients: dict[str, Any] = {}

    def status(self, stream: StreamName) -> str | None:
        """The status of a stream, such as ACTIVE; None if there is no such stream, or none that may be used.
        Raises KinesisError."""
        answer = self._ask(
            stream.region, "describe_stream_summary", _ABSENT | _DENIED, StreamName=stream.name
        )
        return str(answer["StreamDescriptionSummary"]["StreamStatus"]) if answer is not None else None

    def put(self, stream: StreamName, records: Sequence[tuple[str, bytes]]) -> list[str]:
        """Send records, as `(partition key, data)`. Returns for each its error, "" if the stream has it.

        Raises KinesisError, and Refused if the request is one that Kinesis never takes.
        """
        entries = [{"PartitionKey": key, "Data": data} for key, data in records]
        answer = self._ask(stream.region, "put_records", _ABSENT, StreamName=stream.name, Records=entries)
        if answer is None:
            raise KinesisError(f"There is no Kinesis data stream {stream.name} in {stream.region}.")
        return [
            f"{entry['ErrorCode']}: {entry.get('ErrorMessage', '')}" if entry.get("ErrorCode") else ""
            for entry in answer["Records"]
        ]

    def close(self) -> None:
        """Close the connections."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _ask(
        self, region: str, operation: str, absent: frozenset[str], **request: Any
    ) -> dict[str, Any] | None:
        """The answer to a request; None if it is an error of the codes `absent`."""
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise KinesisError("Kinesis data streams need boto3: pip install boto3") from None
        try:
            answer: dict[str, Any] = getattr(self._client(region), operation)(**request)
        except ClientError as error:
            code = str(error.response["Error"].get("Code", ""))
            if code in absent:
                return None
            raise (Refused if code in _REFUSALS else KinesisError)(str(error)) from None
        except BotoCoreError as error:
            raise KinesisError(f"Kinesis at {self._endpoint}: {error}") from None
        return answer

    def _client(self, region: str) -> Any:
        client = self._clients.get(region)
        if client is None:
            client = self._clients[region] = _connect(self._endpoint, region)
        return client


def _connect(endpoint: str, region: str) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import UnknownServiceError

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    session = boto3.session.Session()
    # (a client of AWS takes the credentials and the endpoint of the environment)
    made_up = _MADE_UP if endpoint != AWS and session.get_credentials() is None else None
    try:
        return session.client(
            "kinesis",
            endpoint_url=None if endpoint == AWS else endpoint,
            region_name=region,
            config=config,
            aws_access_key_id=made_up,
            aws_secret_access_key=made_up,
        )
    except UnknownServiceError:
        raise KinesisError("The installed botocore has no description of Kinesis: reinstall it.") from None
    except ValueError as error:  # it is not a URL
        raise KinesisError(f"--kinesis-endpoint: {error}") from None
