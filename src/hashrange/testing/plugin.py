"""The pytest plugin. It does nothing until a test requests a fixture, or is marked.

    dynamodb_local          a database of this process, new for each test; answers all clients meanwhile
    dynamodb                the same in short, unless another plugin has this name, as pytest-dynamodb has
    dynamodb_client         a boto3 client of it; `dynamodb_streams_client`, `dynamodb_resource`
    dynamodb_async_client   makes aiobotocore clients of it: async with dynamodb_async_client() as client
    dynamodb_clock          its clock
    dynamodb_faults         its fault rules, which end with the test
    dynamodb_costs          what the requests of the test cost
    dynamodb_seed           to be overridden: a function that fills a database once, as each test's start
    dynamodb_endpoint       the URL of a port that serves the test's database, for other clients and programs
    dynamodb_server         a server over HTTP on a free port; one per run, with the tables of the marks

    @pytest.mark.dynamodb("orders", "pk, sk:N", indexes={"by-customer": "customer"}, items="orders.json")
    @pytest.mark.dynamodb(tables="template.yaml", parameters={"Stage": "test"})
    @pytest.mark.dynamodb_like_aws        the database is as slow, eventual and strict as the service

Options of the ini file: `dynamodb_scope`, `dynamodb_region`, `dynamodb_account_id`, `dynamodb_tables`,
`dynamodb_now`, `dynamodb_other_services`, `dynamodb_like_aws`.

Options: `--dynamodb-costs`, `--dynamodb-costs-max`.

Each process of pytest-xdist has its own databases and server. The plugin does not touch other services, so
fixtures of moto and of LocalStack may be used in the same test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from hashrange.costs import Costs
    from hashrange.faults import Faults
    from hashrange.testing.database import LocalDatabase, Snapshot
    from hashrange.testing.moments import LocalClock
    from hashrange.testing.servers import Server

Seed = Callable[["LocalDatabase"], object]

_COSTS_MAX: Final = 10
_MARK: Final = "dynamodb"
_FIXTURE: Final = "dynamodb_local"
_LIKE_AWS: Final = "dynamodb_like_aws"
# Nobody listens there: a client that is used after its test reaches no service.
_ENDPOINT_URL: Final = "http://dynamodb.hashrange-plugin.invalid"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("dynamodb_scope", "scope of dynamodb_local: function, class, module, …", default="function")
    parser.addini("dynamodb_region", "region of the fixtures' clients", default="us-east-1")
    parser.addini("dynamodb_account_id", "account of callers without one", default="000000000000")
    parser.addini(
        "dynamodb_tables", "files that declare tables which every database has", type="linelist", default=[]
    )
    parser.addini("dynamodb_now", "moment at which the clock of every database stands still", default="")
    parser.addini(
        "dynamodb_other_services",
        "requests to other services: stop (those without credentials), refuse, allow",
        default="stop",
    )
    parser.addini(
        "dynamodb_like_aws",
        "make every database as slow, eventual and strict as the service: no, fast (sleeping advances the "
        "database's clock), real (sleeping takes its time)",
        default="no",
    )
    group = parser.getgroup("dynamodb")
    group.addoption(
        "--dynamodb-costs",
        action="store_true",
        help="show the tests and their lines whose DynamoDB requests cost most, and what the run would cost",
    )
    group.addoption(
        "--dynamodb-costs-max",
        type=int,
        default=_COSTS_MAX,
        metavar="N",
        help=f"how many tests and lines --dynamodb-costs shows ({_COSTS_MAX})",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "dynamodb(name, key, *, indexes, stream, ttl, items, tables, parameters): "
        "a table, or the tables of a file, that the test's database has (hashrange)",
    )
    config.addinivalue_line(
        "markers",
        "dynamodb_like_aws(mode='fast'): the test's database is as slow, eventual and strict as the service; "
        "with 'real' sleeping takes its time (hashrange)",
    )
    if not any(hasattr(plugin, "dynamodb") for plugin in config.pluginmanager.get_plugins()):
        config.pluginmanager.register(_short_name(), "hashrange-short-name")
    if config.getoption("dynamodb_costs"):
        from hashrange.testing.costs import CostsOfTests

        region = config.getini("dynamodb_region")
        costs = CostsOfTests(config.getoption("dynamodb_costs_max"), region)
        config.pluginmanager.register(costs, "hashrange-costs")


def pytest_itemcollected(item: pytest.Item) -> None:
    names: list[str] | None = getattr(item, "fixturenames", None)
    marked = any(item.get_closest_marker(mark) is not None for mark in (_MARK, _LIKE_AWS))
    if names is not None and _FIXTURE not in names and marked:
        names.insert(0, _FIXTURE)


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    return config.getini("dynamodb_scope")


@pytest.fixture(scope="session")
def _dynamodb_states() -> dict[Seed, Snapshot]:
    """The states that seeds have made, by seed."""
    return {}


@pytest.fixture(scope="session")
def dynamodb_seed() -> Seed | None:
    """Override this, in any scope, with a function that fills a database. It is called once, and each test
    starts with the state that it made, whatever other tests have changed."""
    return None


@pytest.fixture(scope=_scope)
def dynamodb_local(
    request: pytest.FixtureRequest, _dynamodb_states: dict[Seed, Snapshot], dynamodb_seed: Seed | None
) -> Iterator[LocalDatabase]:
    """A database of this process (`hashrange.testing.LocalDatabase`) that answers all DynamoDB clients of the
    process while the test runs. New for each test, or in the scope that ``dynamodb_scope`` names."""
    from hashrange.settings import like_aws
    from hashrange.testing.blocks import local
    from hashrange.testing.database import SETTINGS, LocalDatabase

    ini = request.config.getini
    region, account_id, mode = ini("dynamodb_region"), ini("dynamodb_account_id"), _like_aws_mode(request)
    database = LocalDatabase(
        settings=SETTINGS if mode == "no" else like_aws(SETTINGS),
        now=ini("dynamodb_now") or None,
        region=region,
        account_id=account_id,
    )
    with (
        database,
        local(
            database,
            like_aws="fast" if mode == "fast" else False,
            other_services=ini("dynamodb_other_services"),
            default_account_id=account_id,
        ),
    ):
        if dynamodb_seed is not None and dynamodb_seed in _dynamodb_states:
            database.restore(_dynamodb_states[dynamodb_seed])
        else:
            for path in ini("dynamodb_tables"):
                database.create_tables(_located(request, path))
            if dynamodb_seed is not None:
                dynamodb_seed(database)
                _dynamodb_states[dynamodb_seed] = database.snapshot()
        _declare_marks(database, request)
        yield database


def _short_name() -> ModuleType:
    """A plugin with the fixture's short name, which pytest-dynamodb has as well. (A module, because pytest
    wants no methods as fixtures of wider scopes.)"""

    @pytest.fixture(scope=_scope)
    def dynamodb(dynamodb_local: LocalDatabase) -> LocalDatabase:
        """`dynamodb_local`."""
        return dynamodb_local

    plugin = ModuleType("hashrange_short_name")
    plugin.__dict__["dynamodb"] = dynamodb
    return plugin


def _like_aws_mode(request: pytest.FixtureRequest) -> str:
    """The mode of the mark, or of the ini file. Raises pytest.UsageError."""
    mark = request.node.get_closest_marker(_LIKE_AWS)
    ini = str(request.config.getini(_LIKE_AWS)).strip().lower()
    mode = ini if mark is None else str(dict(enumerate(mark.args)).get(0, mark.kwargs.get("mode", "fast")))
    if mode not in ("no", "fast", "real"):
        raise pytest.UsageError(f"{_LIKE_AWS} is {mode!r}: write fast, real or no.")
    return mode


def _declare_marks(database: LocalDatabase, request: pytest.FixtureRequest) -> None:
    """Make the tables of the marks: first those of the module, then those of the class, then those of the
    test."""
    for mark in reversed(list(request.node.iter_markers(_MARK))):
        _declare(database, request, *mark.args, **mark.kwargs)


def _declare(database: LocalDatabase, request: pytest.FixtureRequest, *arguments: Any, **named: Any) -> None:
    from hashrange.shapes import OPERATIONS
    from hashrange.testing.declarations import DeclarationError, check_names

    check_names(named, ("tables", "parameters", *OPERATIONS["CreateTable"].members))
    tables = named.pop("tables", None)
    if tables is not None:
        paths = [tables] if isinstance(tables, str | Path) else tables
        if not isinstance(paths, list | tuple) or not all(isinstance(path, str | Path) for path in paths):
            raise DeclarationError(
                f"{tables!r} is neither a file nor a list of files; write tables='template.yaml'. A mark "
                "declares a single table by its name and key: @pytest.mark.dynamodb('orders', 'pk'). "
                "A test may have several marks."
            )
        parameters = named.pop("parameters", None)
        database.create_tables(*[_located(request, path) for path in paths], parameters=parameters)
    items = named.pop("items", ())
    if arguments or named:
        database.create_table(*arguments, **named)
        database.load(arguments[0], _located(request, items) if isinstance(items, str | Path) else items)


def _located(request: pytest.FixtureRequest, path: str | Path) -> Path:
    """A file beside the test, or in the root of the run."""
    beside: Path = request.path.parent / path
    return beside if beside.exists() else request.config.rootpath / path


@pytest.fixture(scope="session")
def _dynamodb_clients(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """The clients of the run: one per service, because each database answers all of them."""
    from hashrange.client import new_session

    clients: dict[str, Any] = {}
    session = new_session(request.config.getini("dynamodb_region"))
    options = {"endpoint_url": _ENDPOINT_URL, "aws_access_key_id": "any", "aws_secret_access_key": "any"}

    def client(service: str) -> Any:
        if service not in clients:
            make: Any = session.resource if service == "resource" else session.client
            clients[service] = make("dynamodb" if service == "resource" else service, **options)
        return clients[service]

    return client


@pytest.fixture
def dynamodb_client(dynamodb_local: LocalDatabase, _dynamodb_clients: Callable[[str], Any]) -> Any:
    """A boto3 client of DynamoDB for the database `dynamodb_local`."""
    return _dynamodb_clients("dynamodb")


@pytest.fixture
def dynamodb_streams_client(dynamodb_local: LocalDatabase, _dynamodb_clients: Callable[[str], Any]) -> Any:
    """A boto3 client of DynamoDB Streams for the database `dynamodb_local`."""
    return _dynamodb_clients("dynamodbstreams")


@pytest.fixture
def dynamodb_resource(dynamodb_local: LocalDatabase, _dynamodb_clients: Callable[[str], Any]) -> Any:
    """A boto3 resource of DynamoDB for the database `dynamodb_local`."""
    return _dynamodb_clients("resource")


@pytest.fixture
def dynamodb_async_client(dynamodb_local: LocalDatabase) -> Callable[..., Any]:
    """Makes an aiobotocore client for the database `dynamodb_local`: ``async with dynamodb_async_client() as
    client``.

    The first argument is the service, ``dynamodb`` by default; the other arguments are passed to
    aiobotocore's ``create_client``.
    """
    from importlib import import_module

    get_session = import_module("aiobotocore.session").get_session

    def client(service: str = "dynamodb", **given: Any) -> Any:
        known = {
            "region_name": dynamodb_local.caller.region,
            "endpoint_url": _ENDPOINT_URL,
            "aws_access_key_id": "any",
            "aws_secret_access_key": "any",
        }
        return get_session().create_client(service, **(known | given))

    return client


@pytest.fixture
def dynamodb_endpoint(dynamodb_local: LocalDatabase) -> Iterator[str]:
    """The URL of a port that serves the database `dynamodb_local`: for clients that this process does not
    know, and for programs that the test starts. The variables by which they find the port are set
    meanwhile."""
    from hashrange.testing.servers import at_an_endpoint

    with at_an_endpoint(dynamodb_local) as endpoint_url:
        yield endpoint_url


@pytest.fixture
def dynamodb_clock(dynamodb_local: LocalDatabase) -> LocalClock:
    """The clock of the database `dynamodb_local`: freeze, advance, set, resume."""
    return dynamodb_local.clock


@pytest.fixture
def dynamodb_faults(dynamodb_local: LocalDatabase) -> Iterator[Faults]:
    """The fault rules of the database `dynamodb_local`:
    ``dynamodb_faults.add(throttle("PutItem").on_call(1))``. They are removed at the end of the test."""
    before = set(dynamodb_local.faults)
    yield dynamodb_local.faults
    for fault in set(dynamodb_local.faults) - before:
        dynamodb_local.faults.remove(fault)


@pytest.fixture
def dynamodb_costs(dynamodb_local: LocalDatabase) -> Iterator[Costs]:
    """The costs of the test's requests to the database `dynamodb_local`: ``dynamodb_costs.no_scan()``."""
    with dynamodb_local.costs() as costs:
        yield costs


@pytest.fixture(scope="session")
def _dynamodb_server_of_the_run(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Snapshot]]:
    from hashrange.testing.database import LocalDatabase
    from hashrange.testing.servers import serving

    ini = request.config.getini
    with (
        LocalDatabase(region=ini("dynamodb_region"), account_id=ini("dynamodb_account_id")) as database,
        serving(database) as server,
    ):
        yield server, database.snapshot()


@pytest.fixture(scope=_scope)
def dynamodb_server(
    request: pytest.FixtureRequest, _dynamodb_server_of_the_run: tuple[Server, Snapshot]
) -> Iterator[Server]:
    """A server over HTTP on a free port (`hashrange.testing.Server`), for code in other languages or other
    processes. It is started once per run, and its database has the tables of each test's marks."""
    server, empty = _dynamodb_server_of_the_run
    server.database.restore(empty)
    _declare_marks(server.database, request)
    yield server
    server.database.restore(empty)
