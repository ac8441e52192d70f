"""How pages are made: Jinja templates, static files with their hashes in their names, security headers.

Every value in a template is escaped, and no page has a script or a style inside it, so text from a table
cannot become code. Refuses to know what the pages show.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC: Final = "/console/static/"
_FOLDER: Final = Path(__file__).parent
_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers of every answer of the console."""


async def page(template: str, status: int = 200, **values: Any) -> Response:
    """The page that a template makes of some values."""

    def render() -> str:
        # The first page imports Jinja, and the first use of a template reads and compiles it.
        return environment().get_template(template).render(**values)

    text = await asyncio.to_thread(render)
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return Response(text, status, headers, "text/html; charset=utf-8")


def static(name: str) -> Response | None:
    """A static file by its name with the hash; None if there is none."""
    found = _by_name().get(name)
    if found is None:
        return None
    body, kind = found
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(body, 200, headers, kind)


def href(path: str, **parameters: Any) -> str:
    """An address with parameters; those without a value are left out, and a list is repeated."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", [], False)}
    query = urlencode(given, doseq=True)
    return f"{path}?{query}" if query else path


@cache
def environment() -> Environment:
    """The templates, which escape every value."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(asset=_asset, href=href)
    made.filters.update(amount=amount, size=size, units=units)
    return made


@cache
def _named() -> dict[str, str]:
    """The names of the static files with their hashes, by their own names."""
    names = {}
    for path in sorted((_FOLDER / "static").iterdir()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        names[path.name] = f"{path.stem}-{digest}{path.suffix}"
    return names


@cache
def _by_name() -> dict[str, tuple[bytes, str]]:
    folder = _FOLDER / "static"
    return {
        hashed: ((folder / name).read_bytes(), _TYPES[Path(name).suffix])
        for name, hashed in _named().items()
    }


def _asset(name: str) -> str:
    return STATIC + _named()[name]


def amount(number: int) -> str:
    """A whole number with separators: 12,345."""
    return f"{number:,}"


def units(number: float) -> str:
    """Capacity units: 0.5 capacity units."""
    return f"{number:,.1f}".removesuffix(".0") + (" capacity unit" if number == 1 else " capacity units")


def size(number: float) -> str:
    """A number of bytes: 3.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1_000
    return f"{number:,.1f} TB"
