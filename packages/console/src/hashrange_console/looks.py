"""How pages are made: Jinja templates, static files with a hash in their addresses, security headers.

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

from hashrange.clock import parse_moment
from hashrange_console import pages

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC: Final = "/console/static/"
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
    text = await part(template, **values)
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return Response(text, status, headers, "text/html; charset=utf-8")


async def part(template: str, **values: Any) -> str:
    """The text that a template makes of some values: a page, or a part of one."""

    def render() -> str:
        # The first page imports Jinja, and the first use of a template reads and compiles it.
        return environment().get_template(template).render(**values)

    return await asyncio.to_thread(render)


def static(stamp: str, name: str) -> Response | None:
    """A static file; None if there is none, or if the stamp is not that of this server's files."""
    body = _files().get(name)
    if body is None or stamp != _stamp():
        return None
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(body, 200, headers, _TYPES[Path(name).suffix])


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
        loader=FileSystemLoader([folder / "templates" for folder in _folders()]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(asset=asset, href=href, sections=pages.sections())
    made.filters.update(
        amount=amount, counted=counted, epoch=epoch, plain=plain, size=size, span=span, units=units
    )
    return made


def _folders() -> list[Path]:
    """The folders with templates and static files: the console's own, and those of other rings."""
    return [Path(__file__).parent, *(of_ring.folder for of_ring in pages.of_rings())]


@cache
def _files() -> dict[str, bytes]:
    """The static files by their paths."""
    return {
        path.relative_to(folder / "static").as_posix(): path.read_bytes()
        for folder in _folders()
        for path in sorted((folder / "static").rglob("*"))
        if path.is_file()
    }


@cache
def _stamp() -> str:
    """A hash of all static files. It is a folder in their addresses, so that scripts find one another beside
    themselves."""
    digest = hashlib.sha256()
    for name, body in _files().items():
        digest.update(b"%b\0%d\0%b" % (name.encode(), len(body), body))
    return digest.hexdigest()[:12]


def asset(name: str) -> str:
    """The address of a static file."""
    if name not in _files():
        raise LookupError(f"there is no static file {name}")
    return f"{STATIC}{_stamp()}/{name}"


def amount(number: int) -> str:
    """A whole number with separators: 12,345."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number of things: 1 item, 12,345 items."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def units(number: float) -> str:
    """Capacity units: 0.5 capacity units."""
    return f"{number:,.1f}".removesuffix(".0") + (" capacity unit" if number == 1 else " capacity units")


def plain(number: float) -> str:
    """A number of units: 12,345.5, and 0.02 if it is small."""
    if 0 < abs(number) < 1:
        return f"{number:.2g}"
    return f"{number:,.1f}".removesuffix(".0")


def epoch(moment: str) -> str:
    """The epoch seconds of a moment, with milliseconds."""
    return f"{parse_moment(moment):.3f}"


def span(seconds: float) -> str:
    """A time span in its two largest units: 2 d 3 h."""
    left = round(seconds)
    texts: list[str] = []
    for name, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, left = divmod(left, length)
        if number or texts:
            texts.append(f"{number:,} {name}")
        if len(texts) == 2:
            break
    return " ".join(text for text in texts if not text.startswith("0 ")) or "0 s"


def size(number: float) -> str:
    """A number of bytes: 3.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1_000
    return f"{number:,.1f} TB"
