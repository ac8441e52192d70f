"""The parts that rings have in `hashrange serve`.

An unexpected exception of a part costs this part only: the log and `/health` tell it, and the server starts
without the part. If one of the part's options was given, the server does not start: a user who asks for a
gate or for an engine must not get a server without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
from click.core import ParameterSource

from hashrange.cli.serving.options import names_of, parts_of_rings
from hashrange.rings import ServingPart, Starting, rings
from hashrange.server import Admin
from hashrange.storage.api import Engine


class Parts:
    """The parts of all rings, by the names of the rings, and the values of all options."""

    def __init__(self, given: Mapping[str, Any], context: click.Context) -> None:
        self._parts = parts_of_rings()
        self._given = given
        self._context = context

    def stores(self) -> dict[str, bool]:
        """The options that say where the data is, and whether they were given."""
        options = [part.store for part in self._parts.values() if part.store]
        return {option: bool(self._given[_parameter(option)]) for option in options}

    def ask_for_keys(self) -> bool:
        """Whether nobody has access without a key."""
        return any(self._each(lambda part: part.asks_for_keys(self._given)))

    def engine(self, cache_bytes: int | None) -> Engine | None:
        """The engine of a ring, if the options ask for one. Raises click.ClickException."""
        made = self._each(lambda part: part.engine(self._given, cache_bytes))
        return next((engine for engine in made if engine is not None), None)

    def begin(self, starting: Starting) -> None:
        """Do what the options say. Raises click.ClickException."""
        for _ in self._each(lambda part: part.begin(starting)):
            pass

    def bound(self, admin: Admin) -> dict[str, str]:
        """Show the admin plane to the rings. Returns what they say to who starts the server, by titles."""
        said: dict[str, str] = {}
        for titles in self._each(lambda part: part.bound(admin, self._given)):
            said |= titles
        return said

    def _each(self, ask: Callable[[ServingPart], Any]) -> Iterator[Any]:
        """What the parts answer, one after the other."""
        for name, part in list(self._parts.items()):
            try:
                answer = ask(part)
            except click.ClickException:
                raise
            except Exception as error:
                rings().lose(name, "serving", error)
                del self._parts[name]
                if any(self._is_given(parameter) for parameter in names_of(part)):
                    raise click.ClickException(str(rings().missing(name))) from error
            else:
                yield answer

    def _is_given(self, parameter: str) -> bool:
        source = self._context.get_parameter_source(parameter)
        return source not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")
