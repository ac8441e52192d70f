"""Loads a trigger's function by its name, ``module:function``, from the modules that `python -m` finds."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hashrange_triggers.events import Context, Event
from hashrange_triggers.source import TriggerError

Function = Callable[[Event, Context], Any]


def load(name: str) -> Function:
    """The function that ``module:function`` names; modules of the current directory come first.

    Raises `TriggerError` if the name, the module or the function is wrong.
    """
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        raise TriggerError(f"{name!r} names no function; write module:function, as in totals:count_views.")
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise TriggerError(
            f"There is no module {module_name} in {directory} or among those installed."
        ) from error
    member: Any = module
    for part in function_name.split("."):
        member = getattr(member, part, None)
    if not callable(member):
        raise TriggerError(f"The module {module_name} has no function {function_name}.")
    return adapt(member)


def adapt(function: Callable[..., Any]) -> Function:
    """`function` as a function of an event and a context, even if it takes only an event."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return lambda event, context: function(event)
    except ValueError:
        pass
    with_context: Function = function
    return with_context
