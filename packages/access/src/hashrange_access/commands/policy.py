"""`hashrange policy`: examine policies without a server."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import orjson

from hashrange_access.judging.judge import WOULD_REFUSE
from hashrange_access.judging.known import KNOWN_ACTIONS, KNOWN_KEYS
from hashrange_access.plain_yaml import YamlError, parsed
from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.evaluation import Attached, evaluate
from hashrange_access.policies.linting import Finding, lint
from hashrange_access.policies.requests import Principal, Request, principal_keys
from hashrange_access.policies.suggesting import Uses
from hashrange_access.roles import Identity, with_resource
from hashrange_access.users import UsersError, read

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.group("policy")
def command() -> None:
    """Examine access policies: IAM's documents, in JSON or YAML, and users files."""


@command.command("lint", short_help="Find what is wrong in policies.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--resource", "on_resource", is_flag=True, help="The policies are attached to resources.")
def lint_command(files: tuple[Path, ...], on_resource: bool) -> None:
    """Find errors in policies, and statements that do not do what they seem to do.

    FILES are policy documents or users files. The exit code is 1 if there is an error or a danger.
    """
    found: list[Finding] = []
    for path in files:
        document = _document(path)
        if isinstance(document, dict) and "accounts" in document:
            try:
                read(document)
            except UsersError as error:
                found.append(Finding("error", str(path), str(error)))
            for name, held in _documents_of(document):
                found += _lint_trust(held, name) if name.endswith(".trust") else _lint(held, name)
        else:
            found += _lint(document, str(path), on_resource=on_resource)
    for finding in found:
        click.echo(str(finding))
    if any(finding.severity != "note" for finding in found):
        raise SystemExit(1)
    click.echo(f"{len(files)} file{'s' if len(files) > 1 else ''} without errors or dangers.")


@command.command("simulate")
@click.option("--action", required=True, help="The action, such as GetItem or dynamodb:PartiQLSelect.")
@click.option("--resource", required=True, help="The ARN of the table, index, stream or other resource.")
@click.option("--policy", "policies", multiple=True, type=_FILE, help="A policy of the identity; repeatable.")
@click.option("--boundary", type=_FILE, help="The permissions boundary of the identity.")
@click.option("--session", type=_FILE, help="A session policy.")
@click.option("--resource-policy", type=_FILE, help="The policy of the resource.")
@click.option("--users", type=_FILE, help="A users file, in which --user is looked up.")
@click.option("--user", help="A user of --users, by name or ARN, or the ARN of a role's session.")
@click.option(
    "--principal",
    default="arn:aws:iam::000000000000:user/local",
    show_default=True,
    help="The ARN of the user, without --users.",
)
@click.option(
    "--context",
    multiple=True,
    metavar="KEY=VALUE",
    help="A condition key of the request, such as dynamodb:LeadingKeys=alice; repeatable, also for one key.",
)
def simulate_command(
    action: str,
    resource: str,
    policies: tuple[Path, ...],
    boundary: Path | None,
    session: Path | None,
    resource_policy: Path | None,
    users: Path | None,
    user: str | None,
    principal: str,
    context: tuple[str, ...],
) -> None:
    """Decide one request, and show how each statement counted.

    The exit code is 0 if the request is allowed, and 1 if it is refused.
    """
    identity = _identity(users, user) if users is not None else Identity(_principal(principal))
    attached = Attached(
        identity.policies + tuple(map(_policy, policies)),
        (_policy(resource_policy, on_resource=True),) if resource_policy is not None else (),
        (_policy(boundary),) if boundary is not None else identity.boundary,
        (_policy(session),) if session is not None else identity.session,
    )
    parts = resource.split(":", 5)
    if len(parts) < 6:
        raise click.UsageError(f"--resource {resource} is not an ARN.")
    keys = {"aws:resourceaccount": (parts[4],), **principal_keys(identity.principal), **_context(context)}
    named = action if ":" in action else f"dynamodb:{action}"
    decision = evaluate(Request(identity.principal, named, resource, parts[4], keys), attached)
    for line in decision.explained():
        click.echo(line)
    if not decision.allowed:
        raise SystemExit(1)


@command.command("suggest", short_help="Make the smallest policy for a log of requests.")
@click.argument("logs", nargs=-1, required=True, type=_FILE)
@click.option("--user", help="Only the requests of this user, by name or ARN.")
@click.option(
    "--leading-keys",
    is_flag=True,
    help="Allow only the partition keys that the requests named, where all of them named some.",
)
def suggest_command(logs: tuple[Path, ...], user: str | None, leading_keys: bool) -> None:
    """Print the smallest policy that allows what a server with --auth soft would refuse.

    LOGS are the logs of a server with `--auth soft --log-format json`. Give its users what they may do
    already, or nothing, let the program do all of its work, and attach the policy that this command prints.
    """
    uses = Uses()
    users: set[str] = set()
    for path in logs:
        for line in path.read_bytes().splitlines():
            fields = _refused(line)
            if fields is None:
                continue
            users.add(fields["user"])
            if user in (None, fields["user"], fields["user"].rpartition("/")[2]):
                uses.add(f"dynamodb:{fields['action']}", fields["resource"], fields.get("leading_keys"))
    if not len(uses):
        found = f"it has those of {', '.join(sorted(users))}" if users else f"it has no line {WOULD_REFUSE!r}"
        raise click.ClickException(f"the log has no refused request{f' of {user}' if user else ''}: {found}.")
    document = uses.policy(with_leading_keys=leading_keys)
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _refused(line: bytes) -> dict[str, Any] | None:
    """The fields of a line that says what strict would refuse; None for another line."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None  # the text of a traceback, for example
    if not isinstance(fields, dict) or fields.get("event") != WOULD_REFUSE or "resource" not in fields:
        return None
    return fields


def _lint(document: Any, name: str, *, on_resource: bool = False) -> list[Finding]:
    return lint(document, KNOWN_ACTIONS, KNOWN_KEYS, name=name, on_resource=on_resource)


def _lint_trust(document: Any, name: str) -> list[Finding]:
    try:
        return _lint(with_resource(document, name), name, on_resource=True)
    except PolicyError as error:
        return [Finding("error", name, str(error).removeprefix(name).lstrip(":, "))]


def _context(given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--context {pair} has no value: write KEY=VALUE.")
        found[key.lower()].append(value)
    return {key: tuple(values) for key, values in found.items()}


def _identity(users: Path, user: str | None) -> Identity:
    try:
        given = read(_document(users))
    except UsersError as error:
        raise click.ClickException(f"{users}: {error}") from error
    # Users without a key in the file may have one in the store.
    known: list[Identity] = [*given.people.values(), *(key.owner for key in given.keys.values())]
    for identity in known:
        if user in (identity.principal.name, identity.principal.arn) and user:
            return identity
    names = ", ".join(dict.fromkeys(each.principal.name or each.principal.arn for each in known))
    raise click.UsageError(f"--user {user or ''} is not in the file; give one of {names}.")


def _principal(arn: str) -> Principal:
    parts = arn.split(":", 5)
    if len(parts) < 6 or not parts[5].startswith("user/"):
        raise click.UsageError(f"--principal {arn} is not the ARN of a user.")
    name = parts[5].rpartition("/")[2]
    return Principal(arn, parts[4], name=name, user_id=name)


def _policy(path: Path, *, on_resource: bool = False) -> Policy:
    try:
        return parse(_document(path), name=path.name, on_resource=on_resource)
    except PolicyError as error:
        raise click.ClickException(str(error)) from error


def _document(path: Path) -> Any:
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (YamlError, OSError, UnicodeDecodeError, ImportError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error


def _documents_of(document: Any) -> list[tuple[str, Any]]:
    """The policy documents in a users file, sound or not, with the names of their places."""
    found: list[tuple[str, Any]] = []
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        where, value = stack.pop()
        if isinstance(value, list):
            stack += [(f"{where}[{place}]", member) for place, member in enumerate(value, 1)]
        elif isinstance(value, dict):
            if "Statement" in value:
                found.append((where, value))
            else:
                stack += [(f"{where}.{name}".lstrip("."), member) for name, member in value.items()]
    return sorted(found, key=lambda place: place[0])
