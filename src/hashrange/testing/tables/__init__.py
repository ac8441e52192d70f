"""Tables from files in common formats.

    declaration     a table to be created, and its short form
    cloudformation  a CloudFormation or SAM template, in YAML or JSON
    intrinsics      the functions, parameters and conditions of a template
    terraform       ``terraform show -json`` of a plan or a state
    documents       JSON for and of ``aws dynamodb create-table``; a NoSQL Workbench model

`read` recognises the format by the file's content.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from hashrange.testing.tables import cloudformation, documents, terraform
from hashrange.testing.tables.declaration import Declaration, DeclarationError, declare

__all__ = ["Declaration", "DeclarationError", "declare", "of_document", "read"]


def read(
    path: str | Path, *, parameters: Mapping[str, str] | None = None, region: str, account_id: str
) -> list[Declaration]:
    """The tables of a file; `parameters` are those of a template.

    Raises DeclarationError for a file that declares no tables, OSError for one that cannot be read.
    """
    file = Path(path)
    text = file.read_text(encoding="utf-8")
    try:
        document: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        document = cloudformation.parse_yaml(text)
    try:
        declarations = of_document(document, parameters or {}, region, account_id)
    except (DeclarationError, KeyError, TypeError) as error:
        raise DeclarationError(f"{file}: {error}") from error
    if not declarations:
        raise DeclarationError(f"{file} declares no table of DynamoDB.")
    return declarations


def of_document(
    document: Any, parameters: Mapping[str, str], region: str, account_id: str
) -> list[Declaration]:
    """The tables of a document in any of these formats. Raises DeclarationError for any other document."""
    if isinstance(document, list):
        return [
            declaration
            for part in document
            for declaration in of_document(part, parameters, region, account_id)
        ]
    if cloudformation.is_template(document):
        return cloudformation.of_template(document, parameters, region, account_id)
    if terraform.is_plan(document):
        return terraform.of_plan(document)
    if documents.is_model(document):
        return documents.of_model(document)
    if documents.is_command(document):
        return documents.of_command(document)
    raise DeclarationError(
        "this is neither a CloudFormation or SAM template, nor a Terraform plan in JSON (terraform show "
        "-json), nor JSON for aws dynamodb create-table, nor a NoSQL Workbench model."
    )
