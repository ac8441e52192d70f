"""Signs the requests of a benchmark, for a server with `--auth soft` or `--auth strict`.

botocore makes the signatures. A request is signed when it is made, and a server takes it for five minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

MODES = ("off", "soft", "strict")
ACCOUNT = "000000000000"
KEY_ID = "AKIABENCHMARK"
SECRET = "the-secret-of-the-benchmark"
REGION = "us-east-1"

_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "dynamodb:*", "Resource": f"arn:aws:dynamodb:*:{ACCOUNT}:table/*"},
        {"Effect": "Allow", "Action": ["dynamodb:ListTables", "dynamodb:DescribeLimits"], "Resource": "*"},
    ],
}
_USERS: dict[str, Any] = {
    "accounts": {
        ACCOUNT: {"users": {"bench": {"policies": [_POLICY], "keys": [{"id": KEY_ID, "secret": SECRET}]}}}
    }
}


def write_users(path: Path) -> None:
    """Write the users file of a server that takes the signed requests."""
    path.write_text(json.dumps(_USERS))


def signed(
    host: str, headers: dict[str, str], body: bytes, key_id: str = KEY_ID, secret: str = SECRET
) -> dict[str, str]:
    """The headers of a POST request with this body, with their signature."""
    kept = {name: value for name, value in headers.items() if name not in ("Authorization", "X-Amz-Date")}
    request = AWSRequest("POST", f"http://{host}/", headers={"Host": host} | kept, data=body)
    SigV4Auth(Credentials(key_id, secret), "dynamodb", REGION).add_auth(request)
    return {name: value for name, value in request.headers.items() if name.lower() != "host"}
