"""The forms of declarations: which properties a resource has, and what each of them holds.

    str, int, bool, object    a text, a whole number, true or false; anything
    [form]                    a list
    {"name": form}            an object with these properties
    {str: form}               an object with any names
    Idle("why")               a property without effect in a database of this process
    Idle("why", told=True)    the same, and the declaration says so (`DocumentPlace.notes`)

`fit` refuses a property that its form does not have: otherwise a misspelt or a new one would be dropped in
silence. It converts scalars as CloudFormation does: a number, true and false to a text where a text is
wanted, and a text to a number, true or false.

Source: CloudFormation User Guide, "Template format", "Parameters"; the conversions as public templates use
them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from hashrange.interchange.descriptions import IncompleteDescription, create_request
from hashrange.shapes.vocabulary import Boolean, List, Map, Number, Shape, Structure
from hashrange.testing.declarations import DeclarationError, Request

Form = Any
"""One of the forms above. They are nested values, for which Python has no narrower type."""

Unknown = Literal["none", "empty", "all"]

_EMPTY: Final[tuple[Any, ...]] = (None, False, "", [], {})
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,40}\s*").fullmatch
_NAMES_SHOWN_MAX: Final = 40
_SHOWN_CHARS_MAX: Final = 80
_NOUNS: Final = {str: "a text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Idle:
    """A property that has no effect here, and why. `told`: the user may count on it, so it is reported."""

    why: str
    told: bool = False


NOTHING_SCALES: Final = "nothing scales here: the units stay as declared"
"""Why auto scaling has no effect."""


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where a value stands in a document, such as ``Resources/Orders/Properties``, and the notes on all of
    the document's values that have no effect here."""

    path: str
    notes: list[str]

    def at(self, name: object) -> DocumentPlace:
        """The place of a property, or of a member of a list."""
        return DocumentPlace(f"{self.path}/{name}" if self.path else str(name), self.notes)

    def error(self, text: str) -> DeclarationError:
        """An error that names the place."""
        return DeclarationError(f"{self.path}: {text}" if self.path else text)

    def note(self, text: str) -> None:
        """Note that a value at this place has no effect."""
        self.notes.append(f"{self.path}: {text}")


def of_request(given: Mapping[str, Any], place: DocumentPlace) -> Request:
    """The request of CreateTable in a request or in an answer of DescribeTable, which are at `place`. Raises
    DeclarationError."""
    try:
        return create_request(given)
    except IncompleteDescription as error:
        raise place.error(str(error)) from error


def form_of(shape: Shape) -> Form:
    """The form of the requests of a shape (`hashrange.shapes`)."""
    match shape:
        case Structure():
            return {name: form_of(member) for name, member in shape.members.items()}
        case List():
            return [form_of(shape.member)]
        case Map():
            return {str: form_of(shape.value)}
        case Number():
            return int
        case Boolean():
            return bool
    return str


def fit(form: Form, value: Any, place: DocumentPlace, *, unknown: Unknown = "none") -> Any:
    """A value in its form, without its nulls.

    A property that the form does not have is refused; `unknown` says which are left out instead: those that
    are "empty", as a plan has them for arguments that were not given, or "all".

    Raises DeclarationError, which names the place.
    """
    if isinstance(form, dict):
        return _fit_object(form, value, place, unknown)
    if isinstance(form, list):
        if not isinstance(value, list):
            raise place.error(f"this is a list, not {shown(value)}")
        members = (fit(form[0], member, place.at(n), unknown=unknown) for n, member in enumerate(value))
        return [member for member in members if member is not None]
    if value is None or form is object:
        return value
    fitted = _SCALARS[form](value)
    if fitted is None:
        raise place.error(f"this is {_NOUNS[form]}, not {shown(value)}")
    return fitted


def _fit_object(form: Form, value: Any, place: DocumentPlace, unknown: Unknown) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise place.error(f"this is an object, not {shown(value)}")
    fitted = {}
    for name, content in value.items():
        known = form.get(name, form.get(str))
        if known is None:
            if unknown != "all" and not (unknown == "empty" and content in _EMPTY):
                raise place.error(f"there is no property {name!r} here; {hint(str(name), form)}")
        elif isinstance(known, Idle):
            if known.told and content not in _EMPTY:
                place.at(name).note(known.why)
        elif content is not None:
            fitted[name] = fit(known, content, place.at(name), unknown=unknown)
    return fitted


def hint(name: str, known: Mapping[Any, Any]) -> str:
    """The name that was meant, or all known ones."""
    names = [str(one) for one in known]
    lower = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), lower, 1)
    if near:
        return f"did you mean {lower[near[0]]!r}?"
    more = ", …" if len(names) > _NAMES_SHOWN_MAX else ""
    return f"there are {', '.join(names[:_NAMES_SHOWN_MAX])}{more}"


def shown(value: Any) -> str:
    """A value as errors show it."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def text_of(value: Any) -> str | None:
    """A scalar as a text, as CloudFormation converts it; None for any other value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if _WHOLE(value) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def truth_of(value: Any) -> bool | None:
    """True or false, also as a text; None for any other value."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


_SCALARS: Final[dict[Any, Any]] = {str: text_of, int: _whole, bool: truth_of}
