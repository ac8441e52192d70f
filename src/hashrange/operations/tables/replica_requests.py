"""Reads the changes of a global table's members from an UpdateTable: ReplicaUpdates and related members.

Only the rules that need no table are here; `replica_changes` has the others.

Source: Developer Guide, "Global tables: how it works"; API reference, UpdateTable; the rules and texts as
ack-api-quirks (DDB-TABLE-223, 224, 257, 265) measured them in October 2026.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hashrange.errors import INVALID, ValidationException
from hashrange.operations.context import Context, Request

_ACTIONS: Final = ("Create", "Update", "Delete", "Disassociate")
_REGION: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*").fullmatch
# In the order of the service, as far as it has been reported; the rest is [assumed].
REGIONS: Final = (
    "ap-south-2", "ap-south-1", "eu-south-1", "eu-south-2", "me-central-1", "il-central-1",
    "ca-central-1", "eu-central-1", "eu-central-2", "us-west-1", "us-west-2", "af-south-1",
    "eu-north-1", "eu-west-3", "eu-west-2", "eu-west-1", "ap-northeast-3", "ap-northeast-2",
    "me-south-1", "ap-northeast-1", "sa-east-1", "ap-east-1", "ca-west-1", "ap-southeast-1",
    "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "us-east-1", "us-east-2",
)  # fmt: skip
_STRONG_REGIONS: Final = (
    *("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1"),
    *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3"),
)
_STRONG_MEMBERS: Final = 3
_ONLY: Final = f"{INVALID}Replica modification must be the only operation in the request"
_ONLY_STRONG: Final = "Requests that modify replicas or witnesses must not also modify other fields"
_NO_ACTION: Final = "There are no actions specified in the Replica Update Action of the request."
_KINDS: Final = "Update table operation with more than one type of replica actions not allowed."
SEVERAL: Final = "Update table operation with more than one create or delete replica actions not allowed"
_REGIONS_APART: Final = (
    f"{INVALID}Replicas are not possible here: each region has its own tables, but replicas share one. Start "
    "the server without --separate-regions; in a test, use hashrange.local(shared_regions=True) or "
    "mock_aws(shared_regions=True)."
)
WITH_STRONG: Final = "global tables with MultiRegionConsistency set to STRONG"
_WITNESS_STRONG: Final = (
    "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."
)
_ONLY_CREATE: Final = (
    "Only Replica Create actions are supported when MultiRegionConsistency parameter is provided."
)
_STRONG_COUNT: Final = f"Unsupported replica count for {WITH_STRONG}."
_SAME_REGION: Final = "Cannot target multiple regions with the same action"


class ReplicaActions(NamedTuple):
    """The changes of members in a request: the kind of action, and its parts and new identifiers by
    region."""

    kind: str
    parts: dict[str, Request]
    witness: tuple[str, str] | None
    consistency: str | None
    ids: dict[str, str]

    @property
    def strong(self) -> bool:
        """Whether the request makes a strongly consistent global table."""
        return self.consistency == "STRONG"


def read(request: Request, context: Context, *, alone: bool) -> ReplicaActions | None:
    """The changes of members in a request; None if it has none. `alone`: the request has no other changes."""
    if not request.get("ReplicaUpdates"):
        return None
    actions = [_action(update) for update in request["ReplicaUpdates"]]
    witness = _witness(request.get("GlobalTableWitnessUpdates") or [])
    consistency = request.get("MultiRegionConsistency")
    if not alone:
        raise ValidationException(_ONLY_STRONG if witness or consistency == "STRONG" else _ONLY)
    kinds = {kind for kind, _ in actions}
    if len(kinds) > 1:
        raise ValidationException(_KINDS)
    if context.settings.separate_regions:
        raise ValidationException(_REGIONS_APART)
    # Two equal actions for one region count as one. [report] DDB-TABLE-224
    parts = {part["RegionName"]: part for _, part in actions}
    kind = kinds.pop()
    wanted = ReplicaActions(kind, parts, witness, consistency, {region: context.new_id() for region in parts})
    _check(wanted)
    return wanted


def _action(update: Request) -> tuple[str, Request]:
    given = [action for action in _ACTIONS if update.get(action) is not None]
    if len(given) != 1:
        raise ValidationException(_KINDS if given else _NO_ACTION)
    if given == ["Update"] and not _settings(update["Update"]):
        raise ValidationException(_NO_ACTION)
    return given[0], update[given[0]]


def _settings(part: Request) -> list[Any]:
    """The settings that a part gives, including those of indexes."""
    settings = [part.get("KMSMasterKeyId"), part.get("TableClassOverride")]
    for setting_holder in (part, *(part.get("GlobalSecondaryIndexes") or ())):
        settings += [
            setting_holder.get("ProvisionedThroughputOverride"),
            setting_holder.get("OnDemandThroughputOverride"),
        ]
    return [setting for setting in settings if setting]


def _witness(updates: Sequence[Request]) -> tuple[str, str] | None:
    for update in updates:
        for kind in ("Create", "Delete"):
            if update.get(kind) is not None:
                return kind, update[kind]["RegionName"]
    return None


def _check(wanted: ReplicaActions) -> None:
    creates = wanted.kind == "Create"
    if wanted.consistency is not None and not creates:
        raise ValidationException(_ONLY_CREATE)
    if wanted.witness is not None and not wanted.strong and wanted.witness[0] == "Create":
        raise ValidationException(_WITNESS_STRONG)
    if wanted.witness is not None and wanted.witness[0] != wanted.kind:
        raise ValidationException(_KINDS)
    if creates and len(wanted.parts) > 1 and not wanted.strong:
        raise ValidationException(SEVERAL)
    for region in wanted.parts:
        if creates and not _REGION(region):
            raise ValidationException(
                f"Region {region} is not supported. The latest version of global tables are only supported "
                f"in the following regions: [{', '.join(REGIONS)}]"
            )
    if wanted.strong:
        _check_strong(wanted)


def _check_strong(wanted: ReplicaActions) -> None:
    """Refuse a strongly consistent global table that is not made in one request with three regions. [report]
    DDB-TABLE-257"""
    regions = [*wanted.parts, *([wanted.witness[1]] if wanted.witness else [])]
    if len(regions) != _STRONG_MEMBERS - 1:
        raise ValidationException(_STRONG_COUNT)
    unfit = sorted({region for region in regions if region not in _STRONG_REGIONS})
    if unfit:
        raise ValidationException(f"Unsupported Region(s) specified for {WITH_STRONG}: [{', '.join(unfit)}].")
    if len(set(regions)) < len(regions):
        raise ValidationException(_SAME_REGION)
