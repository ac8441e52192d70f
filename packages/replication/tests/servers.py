"""Servers that ship, asked over their admin plane."""

from __future__ import annotations

import urllib.request

import orjson

from serving import Server


def asked(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        text: str = answer.read().decode()
    return text


def wait_for_base(server: Server) -> None:
    """Ask a server until its copy has a base, which begins a second after the start; else nothing is
    restored from it."""
    for _ in range(10_000):
        if "base" not in orjson.loads(asked(f"{server.admin}/health"))["of_rings"]["replication"]:
            return
    raise AssertionError("the copy gets no base")
