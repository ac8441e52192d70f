"""`hashrange pull`: make the tables of an AWS account, or of another server, on a server of Hashrange."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange.cli.forms import counted, limit_option
from hashrange.cli.pulling import copying
from hashrange.cli.pulling.masking import Masks, Unmasked, WrongRules, masks_of
from hashrange.cli.pulling.naming import TablePattern, names, table_pattern
from hashrange.cli.remote.asking import AWS, endpoint_option, is_aws, tell_server
from hashrange.cli.remote.connecting import connect
from hashrange.cli.remote.progress import bar
from hashrange.rings import Follow, Missing, needed

if TYPE_CHECKING:
    from hashrange.cli.remote.clients import Clients

_EPILOG: Final = """\b
Examples:
  hashrange pull orders                      a table of your AWS account, without its items
  hashrange pull 'shop-*' --limit 1000       with up to 1000 items of each
  hashrange pull --all --profile staging --region eu-west-1 --dry-run
  hashrange pull arn:aws:dynamodb:us-east-1:123456789012:table/orders
  hashrange pull orders --limit 1000 --mask rules.toml     hides what the rules name: docs/pull.md
  hashrange pull --all --from http://127.0.0.1:8001 --limit 100
  hashrange pull orders --follow             with all items, and their changes until Ctrl-C

Region and credentials of the account are those of the AWS CLI: a profile, the environment, a role. The
command needs the right to DescribeTable, DescribeTimeToLive and ListTagsOfResource, to ListTables for
patterns, and to Scan for items; a Scan consumes the read capacity of the account's table. Nothing is written
to the account."""

_KEY_VARIABLE: Final = "HASHRANGE_MASK_KEY"
_FOR_ALL: Final = TablePattern("*")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_HINT: Final = (
    " (AWS does not know these credentials: perhaps AWS_ACCESS_KEY_ID holds the invented ones for a local "
    "server; unset it, or give --profile)"
)


@click.command("pull", epilog=_EPILOG)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--all", "every", is_flag=True, help="All tables of the account and region.")
@click.option(
    "--from",
    "source_url",
    metavar="URL",
    default=AWS,
    show_default=True,
    help=f"Where to copy from: `{AWS}`, or the URL of a server.",
)
@click.option("--profile", help="Profile of the AWS CLI, for the account.")
@click.option("--endpoint-profile", help="Profile of the AWS CLI, for a server here that has users.")
@click.option(
    "--region",
    help="Region of the tables.  [default: that of the ARN, of the profile, or AWS_DEFAULT_REGION]",
)
@limit_option("Copy at most N items of each table.", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--mask",
    "rules",
    metavar="RULES",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File in TOML that says which values are invented, masked, hashed or left out.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Copy all items, and then their changes, until Ctrl-C. Needs hashrange-sync.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be created, and create nothing.")
@endpoint_option("URL of the server in which the tables are made.")
def command(
    tables: tuple[str, ...],
    every: bool,
    source_url: str,
    profile: str | None,
    endpoint_profile: str | None,
    region: str | None,
    limit: int,
    rules: Path | None,
    follow: bool,
    dry_run: bool,
    endpoint_url: str,
) -> None:
    """Copy TABLES of an AWS account to a server here.

    The copies have the keys, indexes, stream, time to live and tags; --limit copies items, too. TABLE is a
    name, a pattern such as 'orders-*', or an ARN. Existing tables are not changed.
    """
    if every == bool(tables):
        raise click.UsageError("Name the tables, or give --all.")
    _check_target(endpoint_url, source_url)
    groups: dict[str | None, list[TablePattern]] = {}
    for pattern in map(table_pattern, tables) if tables else [_FOR_ALL]:
        groups.setdefault(pattern.region or region, []).append(pattern)
    following = _following(limit, rules, len(groups)) if follow else None
    masks = None if rules is None else _masks(rules)
    tell_server(endpoint_url)
    failures = 0
    for of_region, group in groups.items():
        source = connect(source_url, of_region, profile=profile)
        target = _target(endpoint_url, source.dynamodb.meta.region_name, endpoint_profile)
        pull = _Pull(source.dynamodb, target.dynamodb, limit, dry_run, masks)
        failures += pull.run(group)
        if following is not None and not failures and not dry_run:
            following(source, target, pull.names)
    if masks is not None and limit and not dry_run:
        for rule in masks.unmet():
            click.echo(f"{rule.tables}: no value is at {rule.path}; is the rule's path right?", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def _check_target(endpoint_url: str, source_url: str) -> None:
    """Refuse to make tables in an AWS account, and to copy a server to itself."""
    if is_aws(endpoint_url):
        raise click.UsageError(
            "`pull` creates no tables in AWS; name a Hashrange server with --endpoint-url, or unset "
            "AWS_ENDPOINT_URL_DYNAMODB."
        )
    if endpoint_url.rstrip("/") == source_url.rstrip("/"):
        raise click.UsageError(f"--from and --endpoint-url both name {endpoint_url}.")


def _following(limit: int, rules: Path | None, regions: int) -> Follow:
    """What follows tables. Raises click.ClickException, without the ring as well."""
    if rules is not None:
        raise click.UsageError(
            "--mask changes items while they are copied, and --follow passes changes on as they are: leave "
            "one of them out."
        )
    if limit:
        raise click.UsageError("--follow copies all items: leave --limit out.")
    if regions > 1:
        raise click.UsageError("--follow follows the tables of one region: run a command for each.")
    try:
        found: Follow = needed("sync", "follow")
    except Missing as error:
        raise click.ClickException(f"--follow: {error}") from error
    return found


def _masks(rules: Path) -> Masks:
    """The rules of a file. Raises click.ClickException."""
    key = os.environ.get(_KEY_VARIABLE, "").encode()
    if not key:
        click.echo(
            f"Hashes have a key of this run; set {_KEY_VARIABLE} for the same ones each time.", err=True
        )
    try:
        return masks_of(rules, key or os.urandom(32))
    except (WrongRules, OSError) as error:
        raise click.ClickException(str(error)) from error


def _target(endpoint_url: str, region: str, profile: str | None) -> Clients:
    """Clients of the server here. The account's credentials are not sent to it, unless they choose an
    account there."""
    from hashrange.cli.remote.clients import INVENTED

    own = _ACCOUNT.fullmatch(os.environ.get("AWS_ACCESS_KEY_ID", "")) is not None
    credentials = None if own or profile is not None else INVENTED
    return connect(endpoint_url, region, profile=profile, credentials=credentials)


class _Pull:
    """The tables of one region, from the client `source` to the client `target`. `names` are those of the
    tables that were pulled, there and here."""

    def __init__(self, source: Any, target: Any, items_max: int, dry_run: bool, masks: Masks | None) -> None:
        from hashrange.cli.remote.clients import SERVICE_ERRORS, explain

        self._explain, self._refusals = explain, SERVICE_ERRORS
        self._source, self._target = source, target
        self._items_max = items_max
        self._dry_run = dry_run
        self._masks = masks
        self.names: dict[str, str] = {}

    def run(self, group: list[TablePattern]) -> int:
        """Pull the tables of a region; returns how many failed. Raises click.ClickException."""
        try:
            tables = names(self._source, group)
        except self._refusals as error:
            raise click.ClickException(self._why(error)) from error
        failures = 0
        for table in tables:
            try:
                self._pull(table)
            except (copying.Unlike, copying.Endless, Unmasked, WrongRules, *self._refusals) as error:
                failures += 1
                click.echo(f"{table}: {self._why(error)}", err=True)
        return failures

    def _pull(self, table: str) -> None:
        plan = copying.plan(self._source, table, self._explain)
        for note in plan.notes:
            click.echo(f"{plan.name}: {note}", err=True)
        keys = [element["AttributeName"] for element in plan.create["KeySchema"]]
        masked, hidden = None, ""
        if self._masks is not None:
            rules = self._masks.of(plan.name, keys)
            masked = partial(self._masks.apply, rules)
            hidden = f"; masked: {', '.join(rule.path for rule in rules) or 'nothing'}"
        if self._dry_run:
            click.echo(f"{plan.name}: would be created: {plan.about()}{hidden}")
            return
        made = copying.make(self._target, plan)
        self.names[table] = plan.name
        text = plan.about() if made else "is there already; its definition stays as it is"
        if self._items_max:
            with bar(plan.name, self._items_max) as shown:
                copied = copying.copy_items(
                    self._source, table, self._target, plan.name, self._items_max, shown.update, masked
                )
            text += f"; {counted(copied, 'item')} copied{hidden}"
        click.echo(f"{plan.name}: {text}")

    def _why(self, error: Exception) -> str:
        text = self._explain(error)
        unknown = any(code in text for code in ("UnrecognizedClientException", "InvalidClientTokenId"))
        return text + _HINT if unknown else text
