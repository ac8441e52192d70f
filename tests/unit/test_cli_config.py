"""`hashrange config`, and the settings file of `hashrange serve --config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.serving import serve as serving
from hashrange.cli.serving.options import in_sections

FILE = """\
port = 8001
cache = "512MiB"
memory = true

[limits]
idle_seconds_max = "10m"
body_bytes_max = 1024

[behaviour]
fault = ["PutItem nth=3 throttle", "Query latency seconds=1"]
region = "eu-west-1"
"""

OFF = "throttle = false\neventual_reads = ''\n"
"""What --like-aws turns on with the lab only."""


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="hashrange", env=environment)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hashrange.toml"
    path.write_text(FILE)
    return path


def shown(*arguments: str, **environment: str) -> dict[str, tuple[str, str]]:
    """The settings that `config show` prints: value and source."""
    result = invoke("config", "show", "--format", "json", *arguments, **environment)
    assert result.exit_code == 0, result.output
    entries = [orjson.loads(line) for line in result.stdout.splitlines()]
    return {entry["setting"]: (entry["value"], entry["source"]) for entry in entries}


def test_show_names_every_setting_its_value_and_its_source(file: Path) -> None:
    settings = shown("--config", str(file), HASHRANGE_REGION="us-west-2", HASHRANGE_ADMIN_TOKEN="x" * 20)
    parameters = [one.name for section in in_sections(serving.command.params).values() for one in section]
    assert list(settings) == parameters
    assert settings["port"] == ("8001", str(file))
    assert settings["cache"] == ("512MiB", str(file))
    assert settings["idle_seconds_max"] == ("10m", str(file))
    assert settings["body_bytes_max"] == ("1KiB", str(file))
    assert settings["fault"] == ("PutItem nth=3 throttle; Query latency seconds=1", str(file))
    assert settings["region"] == ("us-west-2", "HASHRANGE_REGION")
    assert settings["admin_token"] == ("(secret)", "HASHRANGE_ADMIN_TOKEN")
    assert settings["data_dir"] == ("./hashrange-data", "default")
    assert shown(HASHRANGE_CONFIG=str(file))["port"] == ("8001", str(file))
    lines = invoke("config", "show", "--config", str(file)).stdout.splitlines()
    assert any(line.split() == ["port", "8001", "(from", f"{file})"] for line in lines)


def test_the_command_line_precedes_variables_and_these_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(serving, "serve", lambda database, **options: seen.append(options))
    arguments = ("serve", "--config", str(file), "--pipeline-max", "7", "--admin-port", "0")
    for more in ((), ("--port", "3")):
        result = invoke(*arguments, *more, HASHRANGE_REGION="us-west-2", HASHRANGE_PIPELINE_MAX="6")
        assert result.exit_code == 0, result.output
    assert [(options["port"], options["region"]) for options in seen] == [
        (8001, "us-west-2"),
        (3, "us-west-2"),
    ]
    assert seen[0]["settings"].idle_seconds_max == 600
    assert seen[0]["settings"].body_bytes_max == 1024
    assert seen[0]["settings"].pipeline_max == 7


def test_what_a_file_sets_is_not_made_like_aws(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(serving, "serve", lambda database, **options: seen.append(database.settings))
    file.write_text("memory = true\nadmin_port = 0\nport = 0\nlike_aws = 'real'\ncreate_seconds = 0\n" + OFF)
    assert invoke("serve", "--config", str(file)).exit_code == 0
    assert seen[0].create_seconds == 0
    assert seen[0].account_limits
    assert not seen[0].throttle


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "prot = 1",
            "there is no setting 'prot'; write port, or remove it: `hashrange config show` lists all",
        ),
        ("log-format = 'json'", "there is no setting 'log-format'; write log_format"),
        ("zzzzz = 1", "there is no setting 'zzzzz'; remove it"),
        ("help = true", "there is no setting 'help'"),
        ("config = 'x'", "config is for the command line and HASHRANGE_CONFIG only"),
        ("port = 99999", "port = 99999: 99999 is not a whole number from 0 to 65535; give such a number."),
        ("memory = 'yes'", "memory = 'yes': it is on or off; write true or false."),
        ("port = true", "port = true: it is not a text or a number."),
        ("region = 'Mars 1'", "region = 'Mars 1': 'Mars 1' is not a region"),
        ("sweep_seconds = 'soon'", "sweep_seconds = 'soon': 'soon' is not a duration from 0s; give one such"),
        ("body_bytes_max = '1MB'", "body_bytes_max = '1MB': '1MB' is not a size from 1B; give one such"),
        ("log_format = 'xml'", "log_format = 'xml': 'xml' is not one of"),
        ("fault = ['Nothing']", "fault = ['Nothing']: "),
        ("fault = [1979-05-27]", "it is not a text or a list of texts."),
        ("port = 1\n[more]\nport = 2", "port stands there twice; keep one of them."),
        ("port = ", "is not TOML: "),
    ],
)
def test_a_mistake_is_named_with_its_file_its_key_and_the_remedy(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    checked = invoke("config", "check", str(file))
    assert checked.exit_code == 1
    assert message in checked.stderr
    assert checked.stderr.startswith(f"Error: {file}")
    started = invoke("serve", "--memory", "--config", str(file))
    assert started.exit_code == 2
    assert message in started.stderr


def test_all_mistakes_are_named_at_once(file: Path) -> None:
    file.write_text("prot = 1\nmemory = 1\n")
    assert len(invoke("config", "check", str(file)).stderr.splitlines()) == 2


def test_a_sound_file_and_one_that_is_missing(file: Path, tmp_path: Path) -> None:
    assert invoke("config", "check", str(file)).output == f"{file}: 7 settings, no errors\n"
    missing = invoke("config", "check", str(tmp_path / "none.toml"))
    assert missing.exit_code == 1
    assert "none.toml cannot be read: No such file or directory." in missing.stderr
    file.write_text("eventual_reads = 'soon'")
    assert invoke("config", "check", str(file)).exit_code == 1
