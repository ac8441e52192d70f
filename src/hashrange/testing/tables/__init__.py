"""Tables from files in common formats.

    declaration     a table to be created, and its short form
    forms           which properties a declaration has, and what they hold
    cloudformation  a CloudFormation or SAM template, in YAML or JSON
    resources       the properties of a template's tables, and what becomes of each
    intrinsics      the functions, parameters and conditions of a template
    terraform       ``terraform show -json`` of a plan or a state
    arguments       the arguments of Terraform's resources
    documents       JSON for and of ``aws dynamodb create-table``; a NoSQL Workbench model
    making          makes what is declared

`read` recognises the format by the file's content. What a file declares is made, refused, or noted
(`Declaration.notes`); properties that make no difference here are `forms.Idle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from hashrange.testing.tables import cloudformation, documents, terraform
from hashrange.testing.tables.declaration import Declaration, declare
from hashrange.testing.tables.forms import DeclarationError, DocumentPlace
from hashrange.testing.tables.making import DeclarationWarning, make

__all__ = [
    "Declaration", "DeclarationError", "DeclarationWarning", "declare", "make", "of_document", "read",
    "read_text",
]  # fmt: skip


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
        raise DeclarationError(f"this is no text in UTF-8: {error}") from error


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
