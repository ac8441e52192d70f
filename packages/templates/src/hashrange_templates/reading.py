"""Reads the tables of a file, whose content says in which format it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from hashrange.testing.declarations import Declaration, DeclarationError
from hashrange_templates import cloudformation, documents, terraform
from hashrange_templates.forms import DocumentPlace


def read(
    path: str | Path, *, parameters: Mapping[str, Any] | None = None, region: str, account_id: str
) -> list[Declaration]:
    """The tables of a file; `parameters` are those of a template.

    Raises DeclarationError for a file that declares no tables, OSError for one that cannot be read.
    """
    file = Path(path)
    return read_text(
        file.read_bytes(), str(file), parameters=parameters, region=region, account_id=account_id
    )


def read_text(
    content: bytes, name: str, *, parameters: Mapping[str, Any] | None = None, region: str, account_id: str
) -> list[Declaration]:
    """The tables of the content of a file, which messages call `name`. Raises DeclarationError."""
    try:
        declarations = of_document(_parsed(content), parameters or {}, region, account_id)
    except DeclarationError as error:
        raise DeclarationError(f"{name}: {error}") from error
    except RecursionError as error:
        raise DeclarationError(
            f"{name}: it is nested too deeply, or a part of it refers to itself"
        ) from error
    if not declarations:
        raise DeclarationError(f"{name} declares no table of DynamoDB.")
    return declarations


def _parsed(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return cloudformation.parse_yaml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DeclarationError(f"this is not text in UTF-8: {error}") from error


def of_document(
    document: Any,
    parameters: Mapping[str, Any],
    region: str,
    account_id: str,
    place: DocumentPlace | None = None,
) -> list[Declaration]:
    """The tables of a document in any of these formats, at `place` in a file. Raises DeclarationError for any
    other document."""
    place = place or DocumentPlace("", [])
    if isinstance(document, list):
        return [
            declaration
            for number, part in enumerate(document)
            for declaration in of_document(part, parameters, region, account_id, place.at(number))
        ]
    if cloudformation.is_template(document):
        return cloudformation.of_template(document, parameters, region, account_id, place)
    if terraform.is_plan(document):
        return terraform.of_plan(document, place)
    if documents.is_model(document):
        return documents.of_model(document, place)
    if documents.is_command(document):
        return documents.of_command(document, region, place)
    raise place.error(
        "this is neither a CloudFormation or SAM template, nor a Terraform plan in JSON (terraform show "
        "-json), nor JSON for aws dynamodb create-table, nor a NoSQL Workbench model."
    )
