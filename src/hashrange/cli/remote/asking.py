"""Which server a command works on, and asking its admin plane.

All commands use the option, else AWS_ENDPOINT_URL_DYNAMODB, else AWS_ENDPOINT_URL, else the server of this
machine on the default port. The server's answer to GET / says where its admin plane is. Each command says on
stderr which server it works on.

An error of the plane becomes the command's error, with the plane's text; so does an answer that no such
server gives (`understood`). A server that speaks TLS is trusted as by the SDKs: AWS_CA_BUNDLE names the
authorities, otherwise they are those of the machine.
"""

from __future__ import annotations

import functools
import http.client
import os
import sys
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import click
import msgspec
import orjson
from click.core import ParameterSource

from hashrange.cli.remote.signing import Key, signature_headers
from hashrange.cli.serving.serve import DEFAULT_PORT
from hashrange.clock import SystemClock
from hashrange.protocol import ADMIN_HEADER, NO_ADMIN

DEFAULT_ENDPOINT: Final = f"http://127.0.0.1:{DEFAULT_PORT}"
AWS: Final = "aws"
"""The value of --endpoint-url that means Amazon DynamoDB."""

ENDPOINT_VARIABLES: Final = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
TOKEN_VARIABLE: Final = "HASHRANGE_ADMIN_TOKEN"
"""The variable of the token, for servers whose admin plane has one. There is no option for it, because other
users of the machine can read the options of a command."""
KEY_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
ROOT_VARIABLES: Final = ("HASHRANGE_ROOT_ACCESS_KEY_ID", "HASHRANGE_ROOT_SECRET_ACCESS_KEY", "")
CA_VARIABLE: Final = "AWS_CA_BUNDLE"
"""The variable of the file with the authorities that are trusted; SDKs know it too."""
# Before it answers, the server does the work that a change makes due, which may take long for large tables.
_CHANGE_SECONDS_MAX: Final = 3_600.0
_READ_SECONDS_MAX: Final = 60.0
_HELLO_SECONDS_MAX: Final = 10.0
_REASON_MAX: Final = 200
_ANSWER_BYTES_MAX: Final = 256 << 20
# What reading an answer raises that has other members, or values of other types, than it should.
_UNREADABLE: Final = (
    AttributeError, LookupError, RecursionError, TypeError, ValueError, msgspec.ValidationError,
)  # fmt: skip


def endpoint_option(text: str) -> Callable[[Any], Any]:
    """The option that says which server a command works on."""
    option = click.option(
        "--endpoint-url",
        envvar=ENDPOINT_VARIABLES,
        show_envvar=True,
        default=DEFAULT_ENDPOINT,
        show_default=True,
        help=text,
    )
    return lambda function: option(understanding("endpoint_url")(function))


def understanding(parameter: str) -> Callable[[Any], Any]:
    """Decorates a command that reads answers of the server which `parameter` names."""

    def decorated(function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            with understood(named[parameter]):
                return function(*arguments, **named)

        return call

    return decorated


@contextmanager
def understood(server: str) -> Iterator[None]:
    """Turn the errors of reading a server's answers into a click.ClickException, which says where they were
    read: it may be a mistake of the command, too."""
    try:
        yield
    except _UNREADABLE as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        why = f"{type(error).__name__}: {error}"[:_REASON_MAX]
        raise click.ClickException(
            f"An answer of {server} cannot be read ({why}, {where}); is that a server of DynamoDB's API?"
        ) from error


def plane_options(function: Any) -> Any:
    """The options that say which server's admin plane a command asks: a parameter `plane` of `function`."""

    @functools.wraps(function)
    def call(*arguments: Any, endpoint_url: str, admin_url: str | None, **named: Any) -> Any:
        with understood(admin_url or endpoint_url):
            return function(*arguments, plane=_plane(endpoint_url, admin_url), **named)

    call = click.option(
        "--admin-url",
        envvar="HASHRANGE_ADMIN_URL",
        show_envvar=True,
        help="URL of the server's admin plane, if the server cannot be asked for it.",
    )(call)
    return endpoint_option("URL of the server.")(call)


def tell_server(text: str) -> None:
    """Say on stderr which server the command works on."""
    click.echo(f"Server: {text}", err=True)


def is_aws(endpoint_url: str) -> bool:
    """Whether --endpoint-url names Amazon DynamoDB."""
    host = urlsplit(endpoint_url).hostname or ""
    return endpoint_url == AWS or host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def confirm(question: str, yes: bool, remedy: str = "give --yes, or check first with --dry-run") -> None:
    """Ask before a command overwrites data, or spends money. `remedy`: what to do without a terminal. Raises
    click.Abort; click.ClickException without a terminal."""
    if yes:
        return
    if not has_terminal():
        raise click.ClickException(
            f"{question} There is no terminal for the answer: {remedy}."
        )
    click.confirm(question, abort=True, err=True)


def has_terminal() -> bool:
    """Whether there is a user to ask."""
    return sys.stdin.isatty()


class Plane:
    """The admin plane of a server. The server is asked for it at the first use."""

    def __init__(self, endpoint_url: str | None, admin_url: str | None = None) -> None:
        self._endpoint_url = endpoint_url
        self._admin_url = admin_url

    @functools.cached_property
    def url(self) -> str:
        """The plane's URL. Raises click.ClickException."""
        if self._admin_url is not None:
            tell_server(f"admin plane {self._admin_url}")
            return self._admin_url.rstrip("/")
        assert self._endpoint_url is not None
        tell_server(self._endpoint_url)
        return _plane_of(self._endpoint_url)

    @functools.cached_property
    def server(self) -> str:
        """The server, for messages."""
        return self._endpoint_url or self.url


def _plane(endpoint_url: str, admin_url: str | None) -> Plane:
    """The plane that the options name: the command line takes precedence over the environment."""
    source = click.get_current_context().get_parameter_source
    line = ParameterSource.COMMANDLINE
    if admin_url is not None and source("endpoint_url") is line:
        if source("admin_url") is line:
            raise click.UsageError("--endpoint-url and --admin-url both name the server; give one of them.")
        admin_url = None
    return Plane(endpoint_url, None) if admin_url is None else Plane(None, admin_url)


def hello(
    endpoint_url: str, seconds: float = _HELLO_SECONDS_MAX, *, certificate: str | None = None
) -> str | None:
    """What the server at `endpoint_url` says of its admin plane: its URL, `NO_ADMIN`, or None if it is not a
    server of Hashrange. Raises OSError if no server answers within `seconds`. `certificate` is as for
    `_opened`."""
    try:
        request = urllib.request.Request(endpoint_url, method="HEAD")
        with _opened(request, seconds, certificate) as answer:
            named: str | None = answer.headers.get(ADMIN_HEADER.decode())
            return named
    except urllib.error.HTTPError as error:
        error.close()
        return None
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(error) from error


def authorities() -> str | None:
    """The file of the authorities that are trusted, if the environment names one."""
    return os.environ.get(CA_VARIABLE) or None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the request, with its token, is for the server that was named."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


def _opened(request: urllib.request.Request, seconds: float, certificate: str | None = None) -> Any:
    """The answer to a request. With `certificate`, a file, only a server that has this certificate is
    trusted, by any name. Raises as `urllib.request.urlopen`."""
    # Ignore proxies of the environment, because the address is usually a loopback address.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirects()]
    if request.type == "https":
        # Imported here, because most servers are called without TLS.
        import ssl

        trusted = certificate or authorities()
        try:
            context = ssl.create_default_context(cafile=trusted)
        except OSError as error:
            raise OSError(f"{trusted} is not a file of certificates") from error
        if certificate is not None:
            context.check_hostname = False
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers).open(request, timeout=seconds)


def why_silent(error: Exception) -> str:
    """Why a server does not answer, with the remedy if its certificate is not trusted."""
    reason = getattr(error, "reason", error)
    why = getattr(reason, "verify_message", "")
    if why:
        return f"its certificate is not trusted: {why}. {CA_VARIABLE} names the file of its authority"
    if "WRONG_VERSION_NUMBER" in str(reason):
        return "it does not speak TLS: use http://"
    if isinstance(error.__cause__ or error, http.client.HTTPException | ConnectionError):
        return f"{reason or type(error).__name__}; does it speak TLS, and need https://?"
    return str(reason)


def _plane_of(endpoint_url: str) -> str:
    """The URL of the admin plane of the server at `endpoint_url`, as the server says."""
    no_server = f"{endpoint_url} is not a Hashrange server, and this command needs one"
    if endpoint_url == AWS:
        raise click.ClickException(f"{no_server}.")
    try:
        admin_url = hello(endpoint_url)
    except OSError as error:
        raise click.ClickException(
            f"No server answers at {endpoint_url} ({why_silent(error)}); start one with "
            "`hashrange serve`, or name another with --endpoint-url or AWS_ENDPOINT_URL_DYNAMODB."
        ) from None
    if admin_url is None:
        raise click.ClickException(
            f"{no_server}. Name the server's endpoint with --endpoint-url or AWS_ENDPOINT_URL_DYNAMODB."
        )
    if admin_url == NO_ADMIN:
        raise click.ClickException(
            f"The server at {endpoint_url} has no admin plane, which this command needs: start it without "
            "`--admin-port 0`."
        )
    return reachable(endpoint_url, admin_url)


def reachable(endpoint_url: str, admin_url: str, *, is_here: bool = False) -> str:
    """The admin URL by which this machine reaches the plane; `admin_url` is that on the server's own machine,
    which with `is_here` is this one, at whatever address.

    The plane must be on the server's machine, because a command sends it the token from the environment.
    Raises click.ClickException.
    """
    host, parts = urlsplit(endpoint_url).hostname or "", urlsplit(admin_url)
    admin = _address(parts.hostname)
    if admin.is_unspecified or (parts.hostname == host and not admin.is_loopback):
        return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}"
    if admin.is_loopback and (is_here or host == "localhost" or _address(host).is_loopback):
        return admin_url
    reach = "answers programs of its own machine only" if admin.is_loopback else "is at another address"
    raise click.ClickException(
        f"The admin plane of {endpoint_url} is {admin_url}, which {reach}: run this command on the server's"
        " machine, or name a reachable URL of the plane with --admin-url."
    )


def _address(host: str | None) -> Any:
    """The IP address that `host` is; for a name, some address that is neither loopback nor unspecified."""
    try:
        return ip_address(host or "")
    except ValueError:
        return ip_address("192.0.2.1")


def ask(
    plane: Plane, path: str, member: str, start: str, sent: object = None, method: str | None = None
) -> dict[str, Any]:
    """The plane's answer at `path`, to `sent` if it is given.

    An answer without `member` does not come from an admin plane. `start` is the command that starts a server
    with the plane that is needed. Raises click.ClickException.
    """
    url = plane.url
    data = orjson.dumps(sent) if sent is not None else None
    method = method or ("GET" if data is None else "POST")
    headers = {"Content-Type": "application/json", **_credentials(method, f"{url}{path}", data or b"")}
    try:
        request = urllib.request.Request(f"{url}{path}", data=data, headers=headers, method=method)
        seconds = _READ_SECONDS_MAX if method == "GET" else _CHANGE_SECONDS_MAX
        with _opened(request, seconds) as answer:
            shown = orjson.loads(_body(answer))
    except urllib.error.HTTPError as error:
        with error:
            raise click.ClickException(_error_text(error)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = why_silent(error)
        raise click.ClickException(
            f"No admin plane answers at {url} ({reason}); start a server with `{start}`, and name it with "
            "--endpoint-url, or its admin plane with --admin-url."
        ) from None
    if not isinstance(shown, dict) or member not in shown:
        raise click.ClickException(f"{url} is not an admin plane; is that the server's endpoint?")
    return shown


def health(
    admin_url: str, seconds: float, *, certificate: str | None = None
) -> tuple[int, dict[str, Any]]:
    """The status and the answer of an admin plane that is asked for its health.

    Raises OSError if there is no such answer within `seconds`. `certificate` is as for `_opened`.
    """
    headers = _credentials("GET", f"{admin_url}/health", b"")
    request = urllib.request.Request(f"{admin_url}/health", headers=headers)
    try:
        try:
            answer = _opened(request, seconds, certificate)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            shown = orjson.loads(_body(answer))
            status: int = answer.status
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(error) from error
    if not isinstance(shown, dict) or shown.keys().isdisjoint(("status", "error")):
        raise OSError(f"{admin_url} is not an admin plane")
    return status, shown


def _credentials(method: str, url: str, body: bytes) -> dict[str, str]:
    """The headers that prove who asks: the token, or else a signature with the keys of the environment."""
    given = os.environ.get
    if token := given(TOKEN_VARIABLE):
        return {"Authorization": f"Bearer {token}"}
    # (a command in the container of a server has the variables of its root key)
    for key_id, secret, session in (ROOT_VARIABLES, (*KEY_VARIABLES, "AWS_SESSION_TOKEN")):
        if given(key_id) and given(secret):
            key = Key(given(key_id, ""), given(secret, ""), given(session, ""))
            return signature_headers(method, url, body, key, SystemClock().now())
    return {}


def _body(answer: Any) -> bytes:
    """The body of an answer. Raises as `read`, and ValueError for more than any server of Hashrange sends."""
    body: bytes = answer.read(_ANSWER_BYTES_MAX + 1)
    if len(body) > _ANSWER_BYTES_MAX:
        raise ValueError(f"it is longer than {_ANSWER_BYTES_MAX} bytes")
    return body


def _error_text(error: urllib.error.HTTPError) -> str:
    """The text of an error answer, in any of its forms."""
    try:
        text = str(orjson.loads(_body(error))["error"])
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        text = ""
    if error.code == 401:
        why = f" ({text})" if "Exception: " in text else ""
        return (
            f"{error.url} asks who you are{why}: set {TOKEN_VARIABLE} to the server's --admin-token, or to "
            f"the token that the server printed when it started, or {' and '.join(KEY_VARIABLES)} to the key "
            "of a user who has a role on its admin plane."
        )
    if text:
        return text
    return (
        f"{error.url} answered {error.code}; is it the server's own endpoint, not its admin URL?"
    )


def check_moved(before: Any, after: Any) -> None:
    """Refuse a page that ends where it began, because its pages would never end. Raises ValueError."""
    if before == after:
        raise ValueError(f"the page after {before} ends at the same place")
