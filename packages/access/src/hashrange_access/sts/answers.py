"""Answers of STS: AWS's Query protocol, XML.

Source: AWS Security Token Service API Reference; Smithy, "AWS Query protocol", "Operation error
serialization".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from hashrange.rings import Formed

NAMESPACE: Final = "https://sts.amazonaws.com/doc/2011-06-15/"

Result = Mapping[str, "str | Result"]
"""The members of a result, by their names."""


class StsError(Exception):
    """An error of STS: its code, its text and its status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


def succeeded(action: str, result: Result, request_id: bytes) -> Formed:
    """The answer to an action that succeeded."""
    root = ElementTree.Element(f"{action}Response", {"xmlns": NAMESPACE})
    _add(ElementTree.SubElement(root, f"{action}Result"), result)
    _add(ElementTree.SubElement(root, "ResponseMetadata"), {"RequestId": request_id.decode()})
    return Formed(200, ElementTree.tostring(root), "", request_id)


def failed(error: StsError, request_id: bytes) -> Formed:
    """The answer to a request that is refused."""
    root = ElementTree.Element("ErrorResponse", {"xmlns": NAMESPACE})
    kind = "Sender" if error.status < 500 else "Receiver"
    members = {"Type": kind, "Code": error.code, "Message": error.message}
    _add(ElementTree.SubElement(root, "Error"), members)
    _add(root, {"RequestId": request_id.decode()})
    return Formed(error.status, ElementTree.tostring(root), error.code, request_id)


def _add(parent: ElementTree.Element, members: Result) -> None:
    for name, value in members.items():
        child = ElementTree.SubElement(parent, name)
        if isinstance(value, str):
            child.text = value
        else:
            _add(child, value)
