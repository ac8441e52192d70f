"""Write docs/admin-api.md, the reference of the admin plane for programs, from its OpenAPI document:

    python -m tools.admin_api

A test compares the page with what this module makes, so run it after a change of an endpoint.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from hashrange.cli.admin import core
from hashrange.rings import load, rings
from hashrange.server.admin.application import Endpoint, described, description

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "admin-api.md"
_HEAD: Final = """\
# Admin API

After this page you can ask the admin plane from a program. `GET /v1` lists all addresses in short, and
`GET /v1/openapi.json` has this page for programs.

The server prints the URL of its admin plane when it starts; by default it is `http://127.0.0.1:8100`. Send
the body of a request as JSON, with `Content-Type: application/json`. With `--admin-token` send the token,
`Authorization: Bearer TOKEN`; with `--auth strict` sign the request for the service `hashrange`.
[Open it to others](../packages/access/docs/access.md) describes both, and the roles read, write and admin.

    curl http://127.0.0.1:8100/v1/clock
    curl http://127.0.0.1:8100/v1/clock -H 'Content-Type: application/json' -d '{"advance": "7d"}'

The status of an answer is 200. A refusal has another status and the body `{"error": "…"}`, with the cause and
the remedy. Answers may gain members, so ignore the members that you do not know; a member below `/v1` keeps
its name and its meaning. All below `/console` is private to the console, and changes without notice.

In the tables, `tables[].name` is the member `name` of each object in the list `tables`.
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
    for shape in taken(document):
        shapes[shape]["is_taken"] = True
    paths = document["paths"].items()
    asked = [(f"{method.upper()} {path}", one) for path, ones in paths for method, one in ones.items()]
    uses = Counter(name for _, one in asked for name in _names(one)) + Counter(_names(shapes))
    reference = _Reference(shapes, {name for name, count in uses.items() if count > 1})
    return "\n".join([_HEAD, *[part for name, one in asked for part in reference.described(name, one)]])


def taken(document: dict[str, Any]) -> set[str]:
    """The names of the shapes of requests."""
    operations = [one for operations in document["paths"].values() for one in operations.values()]
    return {name for one in operations for name in _names(one.get("requestBody"))}


class _Reference:
    """The parts of the page. A shape with one use stands in the table of its user, others below a heading."""

    def __init__(self, shapes: dict[str, Any], shared: set[str]) -> None:
        self._shapes = shapes
        self._shared = shared
        self._shown: set[str] = set()

    def described(self, name: str, operation: dict[str, Any]) -> Iterator[str]:
        """The parts about a method on a path, and about the shared shapes that it is the first to use."""
        yield f"## `{name}`\n\n{operation['summary']} Role: {operation['x-role']}.\n"
        query = [one for one in operation["parameters"] if one["in"] == "query"]
        if query:
            members = {one["name"]: {**one["schema"], "description": one["description"]} for one in query}
            needed = [one["name"] for one in query if one["required"]]
            yield self._table({"properties": members, "required": needed, "is_taken": True}, "query")
        bodies = [
            ("takes", operation.get("requestBody", {}).get("content", {})),
            ("answers", operation["responses"]["200"]["content"]),
        ]
        for word, content in bodies:
            for media, body in content.items():
                yield self._body(word, media, body["schema"])
        waiting = [*_names(operation)]
        while waiting:
            shape = waiting.pop(0)
            waiting += _names(self._shapes[shape])
            if shape in self._shared and shape != "Problem" and shape not in self._shown:
                self._shown.add(shape)
                yield f"### {shape}\n\n{self._shapes[shape]['description']}\n"
                yield self._table(self._shapes[shape], "member")

    def _body(self, word: str, media: str, schema: dict[str, Any]) -> str:
        """What an endpoint takes or answers."""
        shape = next(_names(schema), "")
        if not shape or shape in self._shared:
            return f"{word.capitalize()} {_type(schema) if media == 'application/json' else f'`{media}`'}.\n"
        about = self._shapes[shape]
        if not about.get("properties"):
            text = about["description"]
            return f"{word.capitalize()} {text[:1].lower()}{text[1:]}\n"
        return "\n".join([*_more(about, "{}\n"), self._table(about, word)])

    def _table(self, schema: dict[str, Any], word: str) -> str:
        rows = [f"| {word} | type | what it is |", "|---|---|---|", *self._rows(schema, "")]
        return "\n".join(rows) + "\n"

    def _rows(self, schema: dict[str, Any], above: str) -> Iterator[str]:
        """A row for each member, and those of its members: `tables[].name`."""
        for name, member in schema.get("properties", {}).items():
            inner = next((one for one in _names(member) if one not in self._shared), "")
            shape = self._shapes.get(inner, {})
            kind = _type(member, {inner: "object" if shape.get("properties") else "list"})
            if "default" not in member and name not in schema["required"]:
                kind += ", or absent"
            elif "default" in member and "is_taken" in schema:
                default = member["default"]
                kind = kind.removesuffix(" or null")
                kind += ", or absent" if default is None else f"; default `{json.dumps(default)}`"
            about = member.get("description", "")
            place = above + name
            yield f"| `{place}` | {kind} | {' '.join([about, *_more(shape, '{}')])} |"
            under = {"array": "[].", "object": ".NAME."}.get(member.get("type", ""), ".")
            yield from self._rows(shape, place + under)


def _more(shape: dict[str, Any], form: str) -> Iterator[str]:
    """What the description of a shape says after its first sentence, or all of it where no members follow."""
    text = shape.get("description", "")
    more = text.partition(". ")[2] if shape.get("properties") else text
    if more:
        yield form.format(more)


def _type(schema: dict[str, Any], inner: Mapping[str, str] = MappingProxyType({})) -> str:
    """A JSON schema in words; `inner` has the words for shapes that are described in the same table."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return inner.get(name) or f"[{name}](#{_anchor(name)})"
    if "anyOf" in schema:
        return " or ".join(_type(one, inner) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return "list of " + ", ".join(_type(one, inner) for one in schema["prefixItems"])
        case "array":
            return f"list of {_type(schema['items'], inner)}" if "items" in schema else "list"
        case "object":
            values = schema.get("additionalProperties")
            return f"object of {_type(values, inner)}" if isinstance(values, dict) else "object"
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
