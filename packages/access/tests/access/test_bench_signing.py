"""The requests of the benchmarks are signed as a server verifies them."""

from __future__ import annotations

from pathlib import Path

from bench import signing
from bench.wire import Request, render, signed_by
from hashrange.clock import SystemClock
from hashrange_access.signatures import Verifier
from hashrange_access.users import load


def test_signed_requests_are_taken_by_a_server_with_the_users_file(tmp_path: Path) -> None:
    signing.write_users(tmp_path / "users.json")
    users = load(tmp_path / "users.json")
    with signed_by(8000, signing.signed):
        raw = render(Request("ListTables", {"Limit": 1}), 8000)
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
    headers = {name.lower(): value for name, _, value in lines}
    assert Verifier(users.keys, SystemClock().now).verify(b"POST", b"/", headers, body).id == signing.KEY_ID
    assert users.identities[signing.KEY_ID].principal.account == signing.ACCOUNT
