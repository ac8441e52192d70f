"""Asking the admin plane of a running server, for commands such as `hashrange clock`.

An error of the plane becomes the command's own, in the plane's words.
"""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from typing import Any, Final

import click
import orjson

from hashrange.cli.serve import ADMIN_PORT_DISTANCE, DEFAULT_PORT

DEFAULT_ADMIN_URL: Final = f"http://127.0.0.1:{DEFAULT_PORT + ADMIN_PORT_DISTANCE}"
TOKEN_VARIABLE: Final = "HASHRANGE_ADMIN_TOKEN"
"""The variable of the token, for servers whose admin plane has one. It is no option, because other users of
the machine can read the options of a command."""
# The server does the work that a change makes due before it answers, which may take long for large tables.
_CHANGE_SECONDS_MAX: Final = 3_600.0


def admin_url_option(function: Any) -> Any:
    """The option that says where the admin plane is."""
    return click.option(
        "--admin-url",
        envvar="HASHRANGE_ADMIN_URL",
        show_envvar=True,
        default=DEFAULT_ADMIN_URL,
        show_default=True,
        help="URL of the server's admin plane; the server logs it when it starts.",
    )(function)


def ask(
    admin_url: str, path: str, member: str, start: str, sent: object = None, method: str | None = None
) -> dict[str, Any]:
    """The plane's answer at `path`, to `sent` if there is something to send.

    An answer without `member` is not the admin plane's. `start` is the command that starts a server which has
    one. Raises click.ClickException.
    """
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get(TOKEN_VARIABLE):
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = urllib.request.Request(
            f"{admin_url.rstrip('/')}{path}",
            data=orjson.dumps(sent) if sent is not None else None,
            headers=headers,
            method=method,
        )
        # Ignore proxies of the environment, because the address is a loopback address.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_CHANGE_SECONDS_MAX) as answer:
            shown = orjson.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            raise click.ClickException(_told(error)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(
            f"No admin plane answers at {admin_url} ({reason}); start a server with `{start}`, and name its "
            "admin URL with --admin-url."
        ) from None
    if not isinstance(shown, dict) or member not in shown:
        raise click.ClickException(f"{admin_url} is no admin plane; is it the server's own endpoint?")
    return shown


def _told(error: urllib.error.HTTPError) -> str:
    """The text of an error answer, in any of its forms."""
    if error.code == 401:
        return f"{error.url} asks for the server's token: set {TOKEN_VARIABLE} to what its --admin-token is."
    body = error.read()
    try:
        return str(orjson.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"{error.url} answered {error.code}; is it the server's own endpoint, not its admin URL?"
