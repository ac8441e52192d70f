"""Check what a release needs: `make release-check` comes here, before and after it builds the site and dist/.

    python tools/release.py before     what takes no time
    python tools/release.py after      what needs the archives in dist/

- The versions agree: that of the server, of the packages beside it, of the archives in dist/, of the
  changelog, and of the tag if this commit has one. A tag is the version with a v before it.
- The changelog says what is new.
- What the first pages say works as it is typed, from the wheels and from the source archive without a
  compiler, and the first item is there within a minute.
- Every licence of what an installation brings is one that somebody has looked at.
- Nothing is uncommitted.

Each check prints a line; the first that fails ends it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
UNRELEASED: Final = "Unreleased"
VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)[1-9]\d*)?")


class NotReady(Exception):
    """The release is not ready; the text says why."""


def main() -> None:
    if sys.argv[1:] not in (["before"], ["after"]):
        sys.exit(__doc__)
    try:
        version = version_of(ROOT)
        if sys.argv[1] == "before":
            check_changelog(version, (ROOT / "CHANGELOG.md").read_text("utf-8"), tags())
            check_committed(answer("git", "status", "--porcelain"))
            check_packages(version, ROOT)
            return
        check_archives(version, [path.name for path in DIST.iterdir()])
        python = sys.executable
        run(python, "tools/wheels.py", "licences", failing="A licence has to be looked at.")
        for pattern in ("hashrange-*.whl", "hashrange-*.tar.gz"):
            for archive in sorted(DIST.glob(pattern)):
                if fits(archive.name):
                    failing = f"The first page fails with {archive}."
                    run(python, "tools/typed.py", str(archive), failing=failing)
    except NotReady as error:
        sys.exit(f"Not ready: {error}")
    print(f"Ready to release {version}: tag it with `git tag -a v{version}`, and push the tag.")


def version_of(root: Path) -> str:
    """The version of the package in a checkout. Raises NotReady if it is not one of semantic versioning, as
    Python writes them."""
    text = (root / "src" / "hashrange" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if found is None or VERSION.fullmatch(found[1]) is None:
        raise NotReady(f"the version {found and found[1]} is not a semantic version")
    return found[1]


def tags() -> list[str]:
    """The tags of this commit."""
    return answer("git", "tag", "--points-at", "HEAD").split()


def answer(*command: str) -> str:
    """What a command prints. Raises NotReady if it fails."""
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if asked.returncode:
        raise NotReady(f"{' '.join(command)} failed: {asked.stderr}")
    return asked.stdout


def check_packages(version: str, root: Path) -> None:
    """Raise NotReady if a package beside the server has another version, or asks for another one of it."""
    for path in sorted(root.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        asked = [one for one in project["dependencies"] if re.match(r"hashrange\b", one)]
        if project["version"] != version or any(one != f"hashrange=={version}" for one in asked):
            named = ", ".join([project["version"], *asked])
            raise NotReady(f"{project['name']} has {named}, and the version of the server is {version}")
    print("the packages beside the server have its version")


def check_committed(status: str) -> None:
    """Raise NotReady if `git status --porcelain` names a file."""
    if status:
        raise NotReady(f"this is not committed:\n{status}")
    print("everything is committed")


def check_changelog(version: str, changelog: str, tagged: list[str]) -> None:
    """Raise NotReady if the changelog does not have this version, or a tag of this commit is another one.

    Before the tag, the entries may stand under "Unreleased".
    """
    found = re.findall(r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.M | re.S)
    sections: dict[str, str] = dict(found)
    of_version = [tag for tag in tagged if re.fullmatch(r"v\d.*", tag)]
    if of_version not in ([], [f"v{version}"]):
        raise NotReady(f"the tag is {', '.join(of_version)}, and the version {version}")
    if of_version and version not in sections:
        raise NotReady(f"CHANGELOG.md has no section [{version}]")
    entries = sections.get(version, sections.get(UNRELEASED, ""))
    if not re.search(r"^- ", entries, re.MULTILINE):
        raise NotReady(f"CHANGELOG.md says nothing about {version}")
    named = version if version in sections else f"{UNRELEASED}: rename it to [{version}] before the tag"
    print(f"the changelog has the section {named}")


def check_archives(version: str, names: list[str]) -> None:
    """Raise NotReady if dist/ lacks an archive of this version, or has one of another."""
    other = [name for name in names if name.split("-")[1].removesuffix(".tar.gz") != version]
    if other:
        raise NotReady(f"dist/ has {', '.join(other)}, and the version is {version}: `make wheels`")
    for package in (
        "hashrange", "hashrange_mcp", "hashrange_patterns", "hashrange_postgres", "hashrange_replication",
        "hashrange_sql",
        "hashrange_sync",
    ):
        for ending in (".tar.gz", "-py3-none-any.whl"):
            if f"{package}-{version}{ending}" not in names:
                raise NotReady(f"dist/ lacks {package}-{version}{ending}: `make wheels`")
    if not any(re.search(r"-cp3\d+-.*\.whl$", name) for name in names):
        raise NotReady("dist/ lacks a compiled wheel: `make wheels`")
    print(f"the archives in dist/ are those of {version}")


def fits(name: str) -> bool:
    """Whether this Python can install an archive."""
    tag = f"-cp{sys.version_info[0]}{sys.version_info[1]}-"
    return tag in name or name.endswith(("-none-any.whl", ".tar.gz"))


def run(*command: str, failing: str) -> None:
    """Run a command. Raises NotReady with `failing` if it fails."""
    if subprocess.run(command, cwd=ROOT).returncode:
        raise NotReady(failing)


if __name__ == "__main__":
    main()
