"""Make the checkout ready for a package index, where its relative links lead nowhere: the workflow of
releases comes here before it builds.

    HASHRANGE_REPOSITORY=https://HOST/OWNER/NAME/blob/TAG python -m tools.listed

Links of the READMEs lead to the repository's files then, and the packages name the repository. Without the
variable no repository is known: the links become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tools import pages

_BESIDE: Final = sorted(path.parent for path in pages.ROOT.glob("packages/*/pyproject.toml"))
PACKAGES: Final = (pages.ROOT, *_BESIDE)
_PICTURE: Final = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)
_FILE: Final = re.compile(r"""(src|srcset)="([^"]+)\"""")


def main() -> None:
    for package in PACKAGES:
        text = readme(package)
        (package / "README.md").write_text(text, encoding="utf-8")
        with (package / "pyproject.toml").open("a", encoding="utf-8") as project:
            project.write(urls(package))


def readme(package: Path) -> str:
    """The README of a package as an index shows it."""
    text = pages.rewritten(package / "README.md", "README.md", {})
    if not pages.REPOSITORY:
        return _PICTURE.sub("", text)
    # (the address of a file itself, where the repository would show a page about it)
    return _FILE.sub(r'\1="\2?raw=true"', text)


def urls(package: Path) -> str:
    """What is added to the pyproject.toml of a package."""
    if not pages.REPOSITORY:
        return ""
    readme = (package / "README.md").relative_to(pages.ROOT).as_posix()
    lines = {
        "Source": pages.REPOSITORY.partition("/blob/")[0],
        "Documentation": f"{pages.REPOSITORY}/{readme}",
        "Changelog": f"{pages.REPOSITORY}/CHANGELOG.md",
    }
    return "\n[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in lines.items())


if __name__ == "__main__":
    main()
