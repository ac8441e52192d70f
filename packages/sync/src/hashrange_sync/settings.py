"""The settings of `hashrange sync`: a file in TOML or YAML, or objects in Python.

    settings = load(Path("sync.toml"))
    settings = Settings(pairs=[Pair(table="orders", direction="both")])

A file has the members of `Settings`. Every mistake is a `SettingsError` that names the place and the remedy.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from hashrange_sync.errors import SettingsError

Direction = Literal["down", "up", "both"]
STATE_PREFIX: Final = "hashrange-sync."
"""How the names of all tables begin that have states and conflicts."""
_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{3,200}")
_POLICIES: Final = "cloud, edge, newest: ATTRIBUTE, merge: MODULE:FUNCTION, or add: ATTRIBUTE, ATTRIBUTE"


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where one side's tables are: Amazon DynamoDB without an `endpoint`. Region and credentials are as boto3
    finds them, unless they are given. batches: whether the cloud's writes are sent together, as statements of
    PartiQL; a server whose PartiQL does not check conditions needs `false`."""

    region: str | None = None
    profile: str | None = None
    endpoint: str | None = None
    batches: bool = True


class Prefix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts that begin with `prefix`."""

    prefix: str


Wanted = bool | int | str | list[int | str] | Prefix
"""A value, a list of which one must match, or a prefix."""


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which items are kept equal: those whose partition key begins with `prefix`, and whose attributes are as
    `where` says."""

    prefix: str = ""
    where: dict[str, Wanted] = {}


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Two tables that are kept equal.

    table: the name on both sides; `cloud_table` and `edge_table` where they differ.
    direction: `down` (the edge follows), `up` (the cloud follows) or `both`.
    conflicts: what wins if both sides have changed an item, as `Policy.parse` reads it.
    attributes: only these leave the site, and the key; withhold: these do not.
    mark: an attribute of the cloud's items in which each write of sync leaves its number; none by default.
    expiries: whether an expiry on one side deletes the item on the other: `keep` or `delete`.
    rate: the most capacity units a second that are used on the cloud's side; 0 for no limit.
    segments: into how many parts a first copy divides each table.
    """

    table: str = ""
    cloud_table: str = ""
    edge_table: str = ""
    name: str = ""
    direction: Direction = "both"
    conflicts: str | dict[str, str | list[str]] = "cloud"
    filter: Filter = Filter()
    attributes: list[str] = []
    withhold: list[str] = []
    mark: str = ""
    expiries: Literal["keep", "delete"] = "keep"
    rate: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    segments: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4

    @property
    def cloud_name(self) -> str:
        """The name of the cloud's table."""
        return self.cloud_table or self.table

    @property
    def edge_name(self) -> str:
        """The name of the edge's table."""
        return self.edge_table or self.table

    @property
    def title(self) -> str:
        """The name of the pair."""
        return self.name or self.edge_name

    @property
    def state_table(self) -> str:
        """The table of the edge that has what both sides agreed on."""
        return f"{STATE_PREFIX}{self.title}"

    @property
    def conflict_table(self) -> str:
        """The table of the edge that has what lost."""
        return f"{self.state_table}.conflicts"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Both sides, and the pairs of tables on them. `poll` is the pause between two reads of the streams, in
    seconds."""

    cloud: Place = Place()
    edge: Place = Place()
    pairs: list[Pair]
    poll: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 0.25


class Policy(msgspec.Struct, frozen=True):
    """What wins a conflict: the kind, and its argument."""

    kind: Literal["cloud", "edge", "newest", "merge", "add"]
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(self.names)}" if self.names else self.kind

    @property
    def needs_base(self) -> bool:
        """Whether the image that both sides last agreed on is needed."""
        return self.kind in ("merge", "add")

    @classmethod
    def parse(cls, given: str | dict[str, str | list[str]]) -> Policy:
        """Raises `SettingsError`."""
        if isinstance(given, dict):
            kind, argument = next(iter(given.items())) if len(given) == 1 else (str(given), "")
        else:
            kind, _, argument = given.partition(":")
        texts = argument.split(",") if isinstance(argument, str) else argument
        names = tuple(text.strip() for text in texts if text.strip())
        match kind.strip(), names:
            case ("cloud" | "edge") as name, ():
                return cls(name)
            case "newest", (_,):
                return cls("newest", names)
            case "merge", (reference,) if ":" in reference:
                return cls("merge", names)
            case "add", (_, *_):
                return cls("add", names)
        raise SettingsError(f"conflicts = {given!r} is not a policy; write {_POLICIES}.")


def load(path: Path) -> Settings:
    """The settings of a file, by its ending `.toml`, `.yaml` or `.yml`. Raises `SettingsError`."""
    try:
        text = path.read_text(encoding="utf-8")
        document = _yaml(text) if path.suffix in (".yaml", ".yml") else tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # (of TOML, YAML, and of the text's encoding)
        kind = "YAML" if path.suffix in (".yaml", ".yml") else "TOML"
        raise SettingsError(f"{path} is not {kind}: {error}.") from None
    try:
        return checked(msgspec.convert(document, Settings))
    except msgspec.ValidationError as error:
        raise SettingsError(f"{path}: {error}. docs: packages/sync/docs/sync.md") from None
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise SettingsError("YAML needs pyyaml (pip install pyyaml); or write the file in TOML.") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def checked(settings: Settings) -> Settings:
    """The settings, if they can be meant. Raises `SettingsError`."""
    if not settings.pairs:
        raise SettingsError('There are no pairs; add one: [[pairs]] table = "orders".')
    titles = set()
    for pair in settings.pairs:
        if not pair.cloud_name or not pair.edge_name:
            raise SettingsError("A pair has no table; give `table`, or `cloud_table` and `edge_table`.")
        if not _NAME.fullmatch(pair.title):
            raise SettingsError(
                f"{pair.title!r} cannot be the name of a pair; give a `name` of 3 to 200 letters."
            )
        if pair.title in titles:
            raise SettingsError(f"Two pairs are named {pair.title}; give one of them another `name`.")
        titles.add(pair.title)
        if pair.attributes and pair.withhold:
            raise SettingsError(f"{pair.title} has `attributes` and `withhold`; keep one of them.")
        Policy.parse(pair.conflicts)
    return settings
