"""Write docs/admin-api.md, the reference of the admin plane for programs, from its OpenAPI document:

    python -m tools.admin_api

A test compares the page with what this module makes, so run it after a change of an endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hashrange.cli.admin import core
from hashrange.rings import load, rings
from hashrange.server.admin.application import Endpoint, described, description

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "admin-api.md"
_HEAD: Final = """\
# Admin API

This page lists all that programs may ask the admin plane, and the shape of each request and answer. It is
made from the program by `python -m tools.admin_api`; `GET /v1/openapi.json` of a server is the same for
programs.

The server prints the URL of its admin plane when it starts; by default it is `http://127.0.0.1:8100`. Send
the body of a request as JSON, with `Content-Type: application/json`. With `--admin-token` send the token,
`Authorization: Bearer TOKEN`; with `--auth strict` sign the request for the service `hashrange`.
[Open it to others](../packages/access/docs/access.md) describes both, and the roles read, write and admin.

    curl http://127.0.0.1:8100/v1/clock
    curl http://127.0.0.1:8100/v1/clock -H 'Content-Type: application/json' -d '{"advance": "7d"}'

The status of an answer is 200. A refusal has another status and the body `{"error": "…"}`, with the cause and
the remedy. Answers may gain members, so ignore the members that you do not know; a member keeps its name and
its meaning as long as the address begins with `/v1`.

`/health` and `/metrics` have no version, because load balancers and Prometheus are set to these addresses.
What is below `/console` is no part of this API, and changes without notice: pages for browsers, and what
their scripts ask.
"""


def endpoints() -> list[Endpoint]:
    """All that programs may ask: of the core, and of the rings that are installed."""
    of_rings = [load(ring.endpoints) for ring in rings().installed.values() if ring.endpoints]
    everything = [*core(), *[endpoint for some in of_rings for endpoint in some]]
    return [endpoint for endpoint in described(everything) if not endpoint.is_page]


def page() -> str:
    """The text of the page."""
    document = description(endpoints())
    shapes = document["components"]["schemas"]
    asked = [
        (f"{method.upper()} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    rows = [f"| [`{name}`](#{_anchor(name)}) | {one['x-role']} | {one['summary']} |" for name, one in asked]
    parts = [_HEAD, "\n".join(["| address | role | what it is |", "|---|---|---|", *rows]) + "\n"]
    shown: set[str] = set()
    for shape in taken(document):
        shapes[shape]["is_taken"] = True
    for name, operation in asked:
        parts += _described(name, operation, shapes, shown)
    return "\n".join(parts)


def taken(document: dict[str, Any]) -> set[str]:
    """The names of the shapes of requests."""
    operations = [one for operations in document["paths"].values() for one in operations.values()]
    return {name for one in operations for name in _names(one.get("requestBody"))}


def _described(
    name: str, operation: dict[str, Any], shapes: dict[str, Any], shown: set[str]
) -> Iterator[str]:
    """The parts of the page about a method on a path, and about the shapes that it is the first to use."""
    yield f"## `{name}`\n\n{operation['summary']}\n"
    query = [one for one in operation["parameters"] if one["in"] == "query"]
    if query:
        members = {one["name"]: {**one["schema"], "description": one["description"]} for one in query}
        needed = [one["name"] for one in query if one["required"]]
        yield _members({"properties": members, "required": needed, "is_taken": True}, "query")
    bodies = [
        ("Takes", operation.get("requestBody", {}).get("content", {})),
        ("Answers", operation["responses"]["200"]["content"]),
    ]
    lines: list[str] = []
    waiting: list[str] = []
    for word, content in bodies:
        for media, body in content.items():
            is_json = media == "application/json"
            lines.append(f"{word} {_type(body['schema']) if is_json else f'`{media}`'}.")
            waiting += _names(body["schema"])
    yield " ".join(lines) + "\n"
    while waiting:
        shape = waiting.pop(0)
        if shape not in shown:
            shown.add(shape)
            yield f"### {shape}\n\n{shapes[shape]['description']}\n"
            if shapes[shape].get("properties"):
                yield _members(shapes[shape], "member")
            waiting += _names(shapes[shape])


def _members(schema: dict[str, Any], word: str) -> str:
    rows = [f"| {word} | type | what it is |", "|---|---|---|"]
    for name, member in schema["properties"].items():
        kind = _type(member)
        if "default" not in member and name not in schema["required"]:
            kind += ", or absent"
        elif "default" in member and "is_taken" in schema:
            kind += f"; without it `{json.dumps(member['default'])}`"
        rows.append(f"| `{name}` | {kind} | {member.get('description', '')} |")
    return "\n".join(rows) + "\n"


def _type(schema: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return "list of " + ", ".join(_type(one) for one in schema["prefixItems"])
        case "array":
            return f"list of {_type(schema['items'])}" if "items" in schema else "list"
        case "object":
            values = schema.get("additionalProperties")
            return f"object of {_type(values)}" if isinstance(values, dict) else "object"
        case None:
            return "any"
        case kind:
            low, high = schema.get("minimum"), schema.get("maximum")
            limits = f" from {low}" * (low is not None) + f" to {high}" * (high is not None)
            return f"{kind}{limits}"


def _names(schema: Any) -> Iterator[str]:
    """The names of the shapes to which a schema refers."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from _names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _names(value)


def _anchor(heading: str) -> str:
    return "".join(one for one in heading.lower().replace(" ", "-") if one.isalnum() or one in "-_")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
