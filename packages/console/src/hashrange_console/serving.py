"""The console's part of `hashrange serve`: its banner, and the link that is printed at the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hashrange.cli.serving.options import option
from hashrange.rings import ServingPart

if TYPE_CHECKING:
    from hashrange.server import Admin


class _Serving(ServingPart):
    options = (
        option(
            "--console-banner",
            default="",
            metavar="TEXT",
            help="A text on every page of the console, such as `production`.  [default: none]",
        ),
    )

    def bound(self, admin: Admin, given: Mapping[str, Any]) -> Mapping[str, str]:
        from hashrange_console.entry import console_of, link_to

        console_of(admin.door).banner = given["console_banner"]
        return {"console": link_to(admin)}


SERVING: Final = _Serving()
