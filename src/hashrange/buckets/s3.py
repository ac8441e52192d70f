"""Buckets of S3, or of a store that speaks its protocol, through boto3.

boto3 finds credentials and the region: in the environment, the files of the AWS CLI, or a role. boto3 repeats
requests that fail. If they still fail, `_translated` says whether trying again later may help.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hashrange.buckets import (
    ACCESS_DENIED,
    CHANGED,
    NO_SUCH_BUCKET,
    NO_SUCH_KEY,
    BucketError,
    Content,
    Object,
    ObjectReader,
    Unreachable,
)

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_s3.type_defs import CompletedPartTypeDef

AWS: Final = "aws"
"""The value of the endpoint that means AWS itself."""

_PART_BYTES: Final = 8 * 1024 * 1024
# S3 takes 10,000 parts: later parts are larger, so that an object may have 580 GB.
_PARTS_OF_ONE_SIZE: Final = 1_000
_PART_BYTES_LATER: Final = 64 * 1024 * 1024

# A store that accepts connections but sends nothing delays the other jobs for about a minute; then the job is
# postponed.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 20
_ATTEMPTS_MAX: Final = 3

_FINAL: Final = {
    "NoSuchBucket": NO_SUCH_BUCKET,
    "AccessDenied": ACCESS_DENIED,
    "403": ACCESS_DENIED,
    "InvalidAccessKeyId": ACCESS_DENIED,
    "SignatureDoesNotMatch": ACCESS_DENIED,
    "NoSuchKey": NO_SUCH_KEY,
    "PreconditionFailed": CHANGED,
    "412": CHANGED,
}


# Answers with a status below 500 that may pass: credentials are renewed, and clocks set.
_PASSING: Final = frozenset(("RequestTimeout", "RequestTimeTooSkewed", "ExpiredToken", "SlowDown"))
_UNKNOWN_SERVICE: Final = "The installed botocore has no description of S3: reinstall it."
_PASSING_STATUSES: Final = (408, 429)
_CONFLICTS: Final = ("ConditionalRequestConflict", "NoSuchKey")


class S3Buckets:
    """The buckets at `endpoint`: a URL, or `AWS`."""

    def __init__(self, endpoint: str) -> None:
        self._client = _connect(endpoint)

    def check(self, bucket: str) -> None:
        """As `Buckets.check`."""
        with _translated():
            self._client.list_objects_v2(Bucket=bucket, MaxKeys=1)

    def list(self, bucket: str, prefix: str, after: str = "") -> Iterator[Object]:
        """As `Buckets.list`."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, StartAfter=after
        )
        with _translated():
            for page in pages:
                for entry in page.get("Contents", ()):
                    yield Object(entry["Key"], entry["Size"], entry["ETag"])

    def open(self, bucket: str, item_object: Object, offset: int = 0) -> ObjectReader:
        """As `Buckets.open`."""
        if offset >= item_object.bytes:
            return _Nothing()
        with _translated():
            answer = self._client.get_object(
                Bucket=bucket, Key=item_object.key, IfMatch=item_object.etag, Range=f"bytes={offset}-"
            )
        return _Body(answer["Body"])

    @contextmanager
    def create(self, bucket: str, key: str) -> Iterator[_Upload]:
        """As `Buckets.create`."""
        with _translated():
            upload = _Upload(self._client, bucket, key)
            try:
                yield upload
                upload.finish()
            except BaseException:
                upload.abort()
                raise

    def read(self, bucket: str, key: str) -> tuple[bytes, str]:
        """As `Buckets.read`."""
        with _translated():
            answer = self._client.get_object(Bucket=bucket, Key=key)
            return answer["Body"].read(), answer["ETag"]

    def put(
        self, bucket: str, key: str, content: Content, *, etag: str | None = None, new: bool = False
    ) -> str:
        """As `Buckets.put`."""
        body = content if isinstance(content, bytes) else b"".join(content)
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if new else {"IfMatch": etag} if etag else {}
        with _translated():
            try:
                return self._client.put_object(Bucket=bucket, Key=key, Body=body, **condition)["ETag"]
            except self._client.exceptions.ClientError as error:
                # Two conditional writes at a time, and one to an object that was deleted.
                if condition and error.response["Error"].get("Code") in _CONFLICTS:
                    raise BucketError(CHANGED, str(error)) from error
                raise

    def delete(self, bucket: str, key: str) -> None:
        """As `Buckets.delete`."""
        with _translated():
            self._client.delete_object(Bucket=bucket, Key=key)


def _connect(endpoint: str) -> S3Client:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import UnknownServiceError
    except ImportError as error:
        raise BucketError(ACCESS_DENIED, "Buckets of S3 need boto3: pip install boto3") from error
    # Stores other than AWS support neither buckets as host names nor the newer checksums.
    other: dict[str, Any] = {} if endpoint == AWS else {"s3": {"addressing_style": "path"}}
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"mode": "standard", "max_attempts": _ATTEMPTS_MAX},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        **other,
    )
    region = None if endpoint == AWS else boto3.session.Session().region_name or "us-east-1"
    url = None if endpoint == AWS else endpoint
    try:
        return boto3.client("s3", endpoint_url=url, region_name=region, config=config)
    except UnknownServiceError:
        raise BucketError(ACCESS_DENIED, _UNKNOWN_SERVICE) from None
    except ValueError as error:  # the endpoint is not a URL
        raise BucketError(NO_SUCH_BUCKET, f"--s3-endpoint: {error}") from error


@contextmanager
def _translated() -> Iterator[None]:
    """Turn permanent errors of S3 into `BucketError`, and those that may pass into `Unreachable`."""
    from botocore import exceptions, parsers

    try:
        yield
    except exceptions.NoCredentialsError as error:
        raise BucketError(ACCESS_DENIED, str(error)) from error
    except (
        exceptions.ConnectionError,
        exceptions.HTTPClientError,
        exceptions.IncompleteReadError,
        exceptions.CredentialRetrievalError,
        exceptions.TokenRetrievalError,
        exceptions.SSOError,
        parsers.ResponseParserError,
    ) as error:
        raise Unreachable(str(error)) from error
    except exceptions.ClientError as error:
        code = str(error.response["Error"].get("Code", ""))
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        may_pass = status >= 500 or status in _PASSING_STATUSES or code in _PASSING
        # An answer that was cut short has no code; boto3 then shows the status in its place.
        if code not in _FINAL and (may_pass or code == str(status)):
            raise Unreachable(str(error)) from error
        if code not in _FINAL:
            raise
        text = error.response["Error"].get("Message", "")
        message = f"{text} (Service: Amazon S3; Status Code: {status}; Error Code: {code})"
        raise BucketError(_FINAL[code], message) from error


class _Body:
    """The body of an answer."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int, /) -> bytes:
        with _translated():
            return self._body.read(size)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._body.close()


class _Nothing:
    """The empty rest at the end of an object; S3 refuses to send such a range."""

    def read(self, size: int, /) -> bytes:
        return b""

    def close(self) -> None:
        pass


class _Upload:
    """An object that is being written: in one request if it is small, otherwise in parts."""

    def __init__(self, client: S3Client, bucket: str, key: str) -> None:
        self._client, self._bucket, self._key = client, bucket, key
        self._held = bytearray()
        self._upload_id: str | None = None
        self._parts: list[CompletedPartTypeDef] = []
        self.etag = ""

    def write(self, data: bytes, /) -> None:
        self._held += data
        limit = _PART_BYTES if len(self._parts) < _PARTS_OF_ONE_SIZE else _PART_BYTES_LATER
        if len(self._held) >= limit:
            self._send_part()

    def _send_part(self) -> None:
        if self._upload_id is None:
            made = self._client.create_multipart_upload(Bucket=self._bucket, Key=self._key)
            self._upload_id = made["UploadId"]
        number = len(self._parts) + 1
        sent = self._client.upload_part(
            Bucket=self._bucket,
            Key=self._key,
            UploadId=self._upload_id,
            PartNumber=number,
            Body=bytes(self._held),
        )
        self._parts.append({"PartNumber": number, "ETag": sent["ETag"]})
        self._held.clear()

    def finish(self) -> None:
        if self._upload_id is None:
            body = bytes(self._held)
            digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
            answer = self._client.put_object(Bucket=self._bucket, Key=self._key, Body=body)
            self.etag = answer.get("ETag", digest).strip('"')
            return
        if self._held:
            self._send_part()
        done = self._client.complete_multipart_upload(
            Bucket=self._bucket,
            Key=self._key,
            UploadId=self._upload_id,
            MultipartUpload={"Parts": self._parts},
        )
        self.etag = done["ETag"].strip('"')

    def abort(self) -> None:
        if self._upload_id is not None:
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=self._key, UploadId=self._upload_id)
