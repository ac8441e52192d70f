"""A ring of which a part fails costs this part only: every seam of `rings.Ring`, with a broken ring beside a
sound one."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click
import pytest
from click.testing import CliRunner, Result

from hashrange import rings
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.cli.health import installed
from hashrange.cli.health.findings import PROBLEM
from hashrange.cli.serving.options import Sectioned, ring_options
from hashrange.cli.serving.parts import Parts
from hashrange.cli.stores import stores_of
from hashrange.database import Database
from hashrange.rings import Missing, Ring
from hashrange.server import running
from ring_files import put_parts, rings_of

BROKEN = "raise OSError('no such device')"
WHY = "the ring broken cannot be loaded ({}: OSError: no such device); install the package of broken again"
SOUND = """
import click
from hashrange.cli.serving.options import option
from hashrange.rings import Formed, ServingPart
from hashrange.server.admin.application import Endpoint, json


class Part(ServingPart):
    options = (option('--sound', is_flag=True, help='A switch.'),)


async def answer(request):
    return json({})


COMMAND = click.Command('sound-command', callback=lambda: click.echo('done'))
PART = Part()
STORES = PAGES = 'sound'
ENDPOINTS = (Endpoint('GET', '/sound', 'Something.', answer),)
make = lambda database: 'sound'
health = lambda subject: {'problem': 'it is unwell'}
metrics = lambda subject: [('sound_total', 'counter', 'Something.', [('', {}, 1)])]
form = lambda sent, caller, gate, now, request_id: Formed(200, b'sound', '', request_id)
"""


class Answer(NamedTuple):
    status: int
    body: str


Server = Callable[..., Answer]
"""Asks a server: the method, the path, on its admin plane or not."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server with an admin plane, in this process."""
    admin = bind_admin(0)
    with Database.in_memory() as database, running(database, admin=admin) as endpoint:

        def ask(method: str, path: str, *, on_plane: bool = True) -> Answer:
            connection = HTTPConnection(urlsplit(admin.url if on_plane else endpoint).netloc)
            form = {"Content-Type": "application/x-www-form-urlencoded"} if method == "POST" else {}
            connection.request(method, path, headers=form, body=b"Action=Any" if form else None)
            answer = connection.getresponse()
            got = Answer(answer.status, answer.read().decode())
            connection.close()
            return got

        yield ask


def why(member: str) -> str:
    return WHY.format(member)


def use_commands() -> None:
    refused = CliRunner().invoke(main, ["broken-command"])
    assert (refused.exit_code, refused.output) == (1, f"Error: {capital(why('commands broken-command'))}.\n")
    assert CliRunner().invoke(main, ["sound-command"]).output == "done\n"
    assert "broken-command" in CliRunner().invoke(main, ["--help"]).output


def use_serving() -> None:
    def serve(*options: str, **environment: str) -> Result:
        made = click.command(cls=Sectioned)(ring_options(lambda sound: click.echo(f"sound: {sound}")))
        return CliRunner().invoke(made, options, env=environment)

    assert serve("--sound").output == "sound: True\n"
    for refused in (serve("--broken"), serve(HASHRANGE_BROKEN="1")):
        assert refused.exit_code == 2
        assert f"--broken is missing: {why('serving')}." in " ".join(refused.output.split())


def use_stores() -> None:
    assert stores_of("sound://here") == "sound"  # type: ignore[comparison-overlap]
    with pytest.raises(click.ClickException, match="no such device"):
        stores_of("broken://here")


def use_endpoints() -> None:
    with serving() as ask:
        refused = ask("GET", "/broken/of/it")
        assert (refused.status, json.loads(refused.body)) == (503, {"error": why("endpoints")})
        assert ask("GET", "/sound").status == 200
        assert ask("GET", "/v1/tables").status == 200
        why_not = "there is nothing at /nothing; GET /v1 lists what there is"
        assert ask("GET", "/nothing") == Answer(404, json.dumps({"error": why_not}, separators=(",", ":")))


def use_pages() -> None:
    assert rings.rings().each("pages")["sound"] == "sound"
    with serving() as ask:
        refused = ask("GET", "/broken")
        assert (refused.status, json.loads(refused.body)) == (503, {"error": why("pages")})


def use_health() -> None:
    with serving() as ask:
        shown = json.loads(ask("GET", "/health").body)
        assert shown["status"] == "degraded"
        assert shown["of_rings"]["sound"] == {"problem": "it is unwell"}
        assert {"ring": "broken", "error": "health: OSError: no such device"} in shown["rings"]


def use_metrics() -> None:
    with serving() as ask:
        shown = ask("GET", "/metrics")
        assert shown.status == 200
        assert "\nsound_total 1\n" in shown.body
        assert "hashrange_requests_total" in shown.body


def use_parts() -> None:
    with Database.in_memory() as database:
        assert database.part("sound", "sound") == "sound"
        with pytest.raises(Missing) as raised:
            database.part("broken", "broken")
        assert str(raised.value) == f"{capital(why('parts broken'))}."


def use_testing() -> None:
    assert rings.needed("sound", "testing", "sound") is not None
    with pytest.raises(Missing, match="no such device"):
        rings.needed("broken", "testing", "broken")


def use_forms() -> None:
    with serving() as ask:
        refused = ask("POST", "/", on_plane=False)
        assert refused.status == 500
        assert "no such device" in refused.body
        assert ask("GET", "/", on_plane=False).status == 200


def use_follow() -> None:
    refused = CliRunner().invoke(main, ["pull", "orders", "--follow"])
    assert (refused.exit_code, refused.output) == (1, f"Error: --follow: {capital(why('follow'))}.\n")


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


class Seam(NamedTuple):
    """A member of `Ring`: its value in a ring, and a use of the parts of both rings."""

    members: str
    use: Callable[[], None]


SEAMS = {
    "commands": Seam("commands={'{name}-command': Command('', '{parts}:COMMAND')}", use_commands),
    "serving": Seam("serving='{parts}:PART', options=('--{name}',)", use_serving),
    "stores": Seam("stores={'{name}': '{parts}:STORES'}", use_stores),
    "endpoints": Seam("endpoints='{parts}:ENDPOINTS', paths=('/{name}',)", use_endpoints),
    "pages": Seam("pages='{parts}:PAGES', paths=('/{name}',)", use_pages),
    "health": Seam("health='{parts}:health'", use_health),
    "metrics": Seam("metrics='{parts}:metrics'", use_metrics),
    "parts": Seam("parts={'{name}': '{parts}:make'}", use_parts),
    "testing": Seam("testing={'{name}': '{parts}:make'}", use_testing),
    "forms": Seam("forms='{parts}:form'", use_forms),
    "follow": Seam("follow='{parts}:follow'", use_follow),
}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for rings, beside which there are no others."""
    entry_points = importlib.metadata.entry_points

    def without_own(group: str) -> list[importlib.metadata.EntryPoint]:
        return [entry for entry in entry_points(group=group) if entry.name not in rings.HOMES]

    monkeypatch.setattr(importlib.metadata, "entry_points", without_own)
    with rings_of(tmp_path, monkeypatch) as folder:
        yield folder


def test_every_seam_is_here() -> None:
    plain = {"name", "about", "options", "paths"}
    assert SEAMS.keys() | plain == {field.name for field in fields(Ring)}


@pytest.mark.parametrize("seam", SEAMS)
def test_a_part_that_cannot_be_loaded_costs_this_part_only(
    seam: str, outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put_parts(outside, "broken", SEAMS[seam].members, BROKEN)
    put_parts(outside, "sound", SEAMS[seam].members, SOUND)
    SEAMS[seam].use()
    told = [record for record in caplog.records if record.message == "a part of a ring failed"]
    [fields_] = [record.fields for record in told]  # type: ignore[attr-defined]
    assert fields_["ring"] == "broken"
    assert fields_["member"].startswith(seam)
    assert fields_["error"] == "OSError: no such device"
    with serving() as ask:
        health = json.loads(ask("GET", "/health").body)
        assert health["status"] == "degraded"
        [shown] = [ring for ring in health["rings"] if ring["ring"] == "broken"]
        assert shown["error"].endswith("OSError: no such device")
    if seam != "testing":
        rings.rings.cache_clear()
        [finding] = [finding for finding in installed.findings() if finding.part == "ring broken"]
        assert finding.state == PROBLEM
        assert "OSError: no such device" in finding.text


RAISING = """
from hashrange.cli.serving.options import option
from hashrange.rings import ServingPart


class Part(ServingPart):
    options = (option('--raising', is_flag=True, help='A switch.'),)

    def {method}(self, *given):
        raise OSError('no such device')


PART = Part()
"""


@pytest.mark.parametrize("method", ["asks_for_keys", "begin", "bound", "engine"])
@pytest.mark.parametrize("is_given", [False, True])
def test_a_part_of_serve_that_fails_stops_the_start_only_if_it_is_asked_for(
    method: str, is_given: bool, outside: Path
) -> None:
    put_parts(outside, "raising", SEAMS["serving"].members, RAISING.replace("{method}", method))
    put_parts(outside, "sound", SEAMS["serving"].members, SOUND)
    anything: Any = None

    @click.command()
    @click.pass_context
    @ring_options
    def serve(context: click.Context, **given: Any) -> None:
        parts = Parts(given, context)
        parts.ask_for_keys()
        parts.engine(None)
        parts.begin(anything)
        parts.bound(anything)
        click.echo("served")

    done = CliRunner().invoke(serve, ["--raising"] if is_given else [])
    if is_given:
        assert done.exit_code == 1
        assert "The ring raising cannot be loaded (serving: OSError: no such device)" in done.output
    else:
        assert done.output == "served\n"
    assert rings.rings().troubles() == {"raising": "serving: OSError: no such device"}


def test_metrics_and_endpoints_of_the_wrong_form_cost_the_ring_only(outside: Path) -> None:
    members = "metrics='{parts}:metrics', endpoints='{parts}:ENDPOINTS', paths=('/{name}',)"
    put_parts(outside, "wrong", members, "metrics = lambda subject: [('x',)]\nENDPOINTS = (1,)\n")
    put_parts(outside, "sound", members, SOUND)
    put_parts(outside, "thief", members, SOUND.replace("/sound", "/v1/tables").replace("_total", "s_total"))
    with serving() as ask:
        assert ask("GET", "/sound").status == 200
        assert ask("GET", "/v1/tables").body.startswith('{"tables"')
        assert "sound_total 1" in ask("GET", "/metrics").body
        shown = {ring["ring"]: ring["error"] for ring in json.loads(ask("GET", "/health").body)["rings"]}
        assert shown.keys() == {"thief", "wrong"}
        assert "GET /v1/tables is an endpoint of another package" in shown["thief"]
        assert "endpoints: " in shown["wrong"]
        assert "metrics: " in shown["wrong"]


def test_a_metric_that_works_again_is_no_trouble_any_more(outside: Path) -> None:
    put_parts(outside, "moody", "metrics='{parts}:metrics'", "def metrics(subject): return 1 / subject\n")
    assert rings.rings().each("metrics", lambda metrics: metrics(0)) == {}
    assert rings.rings().troubles() == {"moody": "metrics: ZeroDivisionError: division by zero"}
    assert rings.rings().each("metrics", lambda metrics: metrics(1)) == {"moody": 1}
    assert rings.rings().troubles() == {}


def test_paths_of_a_ring_that_is_not_installed_say_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **named: ())
    with rings_of(tmp_path, monkeypatch), serving() as ask:
        assert "the ring lab is not installed; install" in ask("GET", "/console/heat").body
        assert ask("GET", "/console").status == 404
        assert "the ring console is not installed; install" in ask("GET", "/console").body
