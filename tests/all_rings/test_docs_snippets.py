"""What the documents tell to type is well-formed: commands and options exist, code can be read."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import orjson
import pytest
import yaml

from hashrange.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS += sorted((ROOT / "packages").glob("*/docs/*.md"))
# What ends a command on a line.
ENDS = ("|", "||", "&", "&&", ";", ">", "<", "#", "2>&1", "then:")


def snippets(text: str) -> Iterator[tuple[str, str]]:
    """The blocks of a document with their languages, "" for none."""
    yield from re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command `hashrange …` in blocks, indented lines and inline code."""
    code = [line for _, block in snippets(text) for line in block.replace("\\\n", " ").splitlines()]
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    code += re.findall(r"^ {4}(\S.*)$", prose, re.MULTILINE)
    code += re.findall(r"`([^`]+)`", prose)
    for line in code:
        found = re.search(r"(?:^|[\s;&|/(])hashrange (?=[a-z-])(.*)", line.replace("\n", " "))
        # (the words after an image's name are options of its entry point)
        if found is None or re.match(r"\s*(#|//|from |import |docker (run|build))", line):
            continue
        try:
            words = shlex.split(found[1], comments=True)
        except ValueError:  # an apostrophe in a comment
            words = found[1].split()
        end = next((n for n, word in enumerate(words) if word in ENDS or word.startswith(";")), len(words))
        yield words[:end]


def wrong(words: list[str]) -> str | None:
    """What is wrong with the words after `hashrange`; None if they name what exists."""
    command: click.Command = main
    context = click.Context(main)
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0).rstrip(".,:)")
        inner = command.get_command(context, name)
        if inner is None:
            return f"there is no command {name}"
        command = inner
    known = {"--help", *(option for parameter in command.params for option in parameter.opts)}
    for word in rest:
        option = word.partition("=")[0].rstrip(".,:)")
        if option.startswith("--") and option != "--" and option not in known:
            return f"{command.name} has no option {option}"
    return None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_options_exist(document: Path) -> None:
    if document.name == "rings.md":
        return  # (its commands are those of its example: test_rings runs it)
    given = list(commands(document.read_text("utf-8")))
    assert [(" ".join(words), why) for words in given if (why := wrong(words)) is not None] == []


def test_commands_are_found_and_judged() -> None:
    text = (
        "Run `hashrange serve --memory --no-such-thing`, or\n\n    hashrange swerve --port 1\n\n"
        "```sh\n. bin/activate && hashrange clock advance 7d --endpoint-url \\\n  http://x | cat --none\n"
        "uvx --from x hashrange doctor --data-dir y\n```\n"
    )
    found = list(commands(text))
    assert sorted(words[0] for words in found) == ["clock", "doctor", "serve", "swerve"]
    assert sorted(str(wrong(words)) for words in found) == [
        "None",
        "None",
        "serve has no option --no-such-thing",
        "there is no command swerve",
    ]
    assert sum(len(list(commands(path.read_text("utf-8")))) for path in DOCUMENTS) > 100


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_can_be_read(document: Path) -> None:
    for language, block in snippets(document.read_text("utf-8")):
        if language == "python":
            ast.parse(block)
        elif language == "json":
            orjson.loads(block)
        elif language == "yaml":
            yaml.safe_load(block)
        elif language == "sh":
            checked = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_javascript_can_be_read(tmp_path: Path) -> None:
    blocks = [
        block
        for path in DOCUMENTS
        for language, block in snippets(path.read_text("utf-8"))
        if language == "javascript"
    ]
    assert blocks
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.mjs"
        file.write_text(block)
        checked = subprocess.run(["node", "--check", file], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
