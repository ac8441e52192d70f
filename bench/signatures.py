"""`python -m bench.signatures`: what it costs to verify a signature, and to refuse one.

A genuine request, the same with a wrong signature, and one with a key that the server does not know are
verified in turn, many times. CPU time counts, and the best of several rounds, because other programs only
make it longer. The refusals should cost the same: otherwise their time would tell whether a key exists.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import suppress

from bench import signing
from bench.report import table
from hashrange.clock import SystemClock
from hashrange.errors import ServiceError
from hashrange_access.signatures import Key, Verifier

ROUNDS = 30
CALLS = 1_000
BODY = b'{"TableName":"scores","Key":{"user":{"S":"alice"}}}'
HOST = "127.0.0.1:8000"


def headers_of(**changes: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    """The headers of a signed GetItem. A change replaces a part of a header's value."""
    given = {"X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Type": "application/x-amz-json-1.0"}
    sent = {"Host": HOST} | signing.signed(HOST, given, BODY)
    made = {name.lower().encode(): value.encode() for name, value in sent.items()}
    for name, (old, new) in changes.items():
        made[name.encode()] = made[name.encode()].replace(old, new)
    return made


def microseconds(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The CPU microseconds of a call: the best round of each. The rounds of all take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, function in calls.items():
            began = time.process_time()
            for _ in range(CALLS):
                function()
            best[name] = min(best[name], (time.process_time() - began) / CALLS * 1e6)
    return best


def measured() -> dict[str, float]:
    """The microseconds of each kind of request."""
    key = Key(signing.KEY_ID, signing.SECRET)
    verifier = Verifier({key.id: key}, SystemClock().now)
    genuine = headers_of()
    wrong = headers_of(authorization=(b"Signature=", b"Signature=00"))
    unknown = headers_of(authorization=(signing.KEY_ID.encode(), b"AKIANOTKNOWN1"))

    def of(headers: dict[bytes, bytes]) -> Callable[[], object]:
        def verify() -> None:
            with suppress(ServiceError):
                verifier.verify(b"POST", b"/", headers, BODY)

        return verify

    return microseconds({
        "genuine": of(genuine),
        "a wrong signature of a known key": of(wrong),
        "an unknown key": of(unknown),
    })


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.signatures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.parse_args()
    rows = [[name, f"{value:.1f}"] for name, value in measured().items()]
    print("\n".join(table(["request", "us"], rows)))


if __name__ == "__main__":
    main()
