"""Finds a trigger's function by its name, ``module:function``, in the modules that `python -m` finds."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hashrange.triggers.events import Context, Event
from hashrange.triggers.source import TriggerError

Function = Callable[[Event, Context], Any]


def load(name: str) -> Function:
    """The function that ``module:function`` names; modules of the current directory come first.

    Raises `TriggerError` that says what was not found.
    """
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        raise TriggerError(f"{name!r} names no function; write module:function, as in totals:count_views.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise TriggerError(f"There is no module {module_name} in {here} or among those installed.") from error
    found: Any = module
    for part in function_name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise TriggerError(f"The module {module_name} has no function {function_name}.")
    return adapt(found)


def adapt(function: Callable[..., Any]) -> Function:
    """`function` as a function of an event and a context, even if it takes only an event."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return lambda event, context: function(event)
    except ValueError:
        pass
    found: Function = function
    return found
