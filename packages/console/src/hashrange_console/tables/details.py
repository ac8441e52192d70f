"""What the description of a table does not say: its time to live, its recovery, its tags."""

from __future__ import annotations

from typing import Any, Final

from hashrange.clock import show_moment
from hashrange_console.reach import Refused, View

_STATE_CODES: Final = ("ValidationException", "ResourceNotFoundException", "TableNotFoundException")


async def tags_of(view: View, arn: str) -> list[dict[str, str]]:
    """The tags of a table."""
    tags: list[dict[str, str]] = []
    sent = {"ResourceArn": arn}
    while True:
        answer = await _known(view, "ListTagsOfResource", sent)
        tags += answer.get("Tags", [])
        if "NextToken" not in answer:
            return tags
        sent = {"ResourceArn": arn, "NextToken": answer["NextToken"]}


async def _known(view: View, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request about a part of a table; {} while the table's state refuses it, as that of a
    table that is being made or deleted does."""
    try:
        return await view.read(operation, sent)
    except Refused as error:
        if error.code in _STATE_CODES:
            return {}
        raise


async def time_to_live_of(view: View, table: str) -> dict[str, Any]:
    """The status and the attribute of a table's time to live; "" if it has none."""
    answer = await _known(view, "DescribeTimeToLive", {"TableName": table})
    about = answer.get("TimeToLiveDescription", {})
    return {"status": about.get("TimeToLiveStatus", "DISABLED"), "attribute": about.get("AttributeName", "")}


async def recovery_of(view: View, table: str) -> dict[str, Any] | None:
    """What is known of a table's point-in-time recovery; None if it is off."""
    answer = await _known(view, "DescribeContinuousBackups", {"TableName": table})
    about = answer.get("ContinuousBackupsDescription", {}).get("PointInTimeRecoveryDescription", {})
    if about.get("PointInTimeRecoveryStatus") != "ENABLED":
        return None
    return {
        "days": about.get("RecoveryPeriodInDays"),
        "earliest": show_moment(about["EarliestRestorableDateTime"]),
        "latest": show_moment(about["LatestRestorableDateTime"]),
    }
