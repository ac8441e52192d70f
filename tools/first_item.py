"""Put and read an item with an installed Hashrange: the proof that a wheel works where it was installed.

    PYTHON tools/first_item.py [--form compiled|interpreted]

PYTHON is that of the environment. It starts a durable server in a folder of its own, speaks to it over HTTP,
stops it, starts it again and reads the item again. It uses the standard library only, because the environment
has nothing else that is certain. `--form` fails where the hot path has another form.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import Any

_AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=any"
)
_ITEM = {"url": {"S": "/"}, "title": {"S": "Home"}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--form", choices=["compiled", "interpreted"])
    form = parser.parse_args().form
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        started = _with_server(folder, _put)
        assert _with_server(folder, _get)["endpoint"] != ""
    if form is not None and started["hot_path"] != form:
        sys.exit(f"The hot path is {started['hot_path']}, not {form}.")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(
        f"Hashrange {started['version']} ({started['hot_path']}), {python}, {platform.platform()}: "
        f"an item was put, and read after a new start, in {time.monotonic() - began:.1f} s"
    )


def _with_server(folder: str, work: Any) -> dict[str, Any]:
    """Run a server while `work` gets its endpoint; returns what the server said at its start."""
    command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", "--log-format", "json"]
    # Ctrl-C and SIGTERM have no like on Windows: a write that was acknowledged is on disk in any case.
    command += ["--data-dir", f"{folder}/data"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    try:
        said = ""
        for line in process.stderr:
            said += line
            started: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if started.get("event") == "started":
                work(started["endpoint"])
                return started
        sys.exit(f"The server ended before it listened:\n{said}")
    finally:
        process.terminate()
        process.stderr.close()
        process.wait(30)


def _put(endpoint: str) -> None:
    _call(
        endpoint,
        "CreateTable",
        TableName="pages",
        KeySchema=[{"AttributeName": "url", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "url", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    _call(endpoint, "PutItem", TableName="pages", Item=_ITEM)
    _get(endpoint)


def _get(endpoint: str) -> None:
    answer = _call(endpoint, "GetItem", TableName="pages", Key={"url": {"S": "/"}})
    assert answer == {"Item": _ITEM}, answer


def _call(endpoint: str, operation: str, **request: Any) -> Any:
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": _AUTHORIZATION,
    }
    sent = urllib.request.Request(endpoint, json.dumps(request).encode(), headers)
    # (a proxy of the environment does not reach this machine)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(sent, timeout=30) as answer:
        return json.loads(answer.read())


if __name__ == "__main__":
    main()
