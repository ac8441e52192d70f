"""What commands share that send signed requests: whose signature, for which region, and a question before
they reach AWS."""

from __future__ import annotations

from typing import Any

import click

from hashrange.cli.remote.asking import AWS, authorities, confirm, is_aws
from hashrange_lab.loads import sending
from hashrange_lab.loads.sending import Endpoint


def signature_options(function: Any) -> Any:
    """The options `--region` and `--profile`."""
    function = click.option("--profile", help="Profile of the AWS CLI.")(function)
    return click.option(
        "--region", help="Region of the signature.  [default: the profile's, or AWS_DEFAULT_REGION]"
    )(function)


def endpoint_of(url: str, region: str | None, profile: str | None, question: str, *, yes: bool) -> Endpoint:
    """The endpoint that --endpoint-url names. Before an endpoint of AWS gets requests, the user is asked:
    `question`, unless the answer is `yes`. Raises `sending.Unreachable` and click's exceptions."""
    if url == AWS:
        region = region or _region(profile)
        url = f"https://dynamodb.{region}.amazonaws.com"
    if is_aws(url):
        confirm(f"{question} at {url}, in your account, which pays for it?", yes, "give --yes")
    return sending.endpoint(url, region, profile, authorities())


def _region(profile: str | None) -> str:
    """The region of a profile, or of the environment. Raises click.UsageError."""
    try:
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError:
        raise click.UsageError("--endpoint-url aws needs boto3; install it with: pip install boto3") from None
    try:
        region = Session(profile=profile).get_config_variable("region")
    except BotoCoreError as error:
        raise click.UsageError(str(error)) from None
    if not region:
        raise click.UsageError("Name the region with --region, such as --region eu-west-1.")
    return str(region)
