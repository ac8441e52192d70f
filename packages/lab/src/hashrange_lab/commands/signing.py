"""The options of commands that send signed requests: whose signature, and for which region."""

from __future__ import annotations

from typing import Any

import click


def signature_options(function: Any) -> Any:
    """The options `--region` and `--profile`."""
    function = click.option("--profile", help="Profile of the AWS CLI.")(function)
    return click.option(
        "--region", help="Region of the signature.  [default: the profile's, or AWS_DEFAULT_REGION]"
    )(function)
