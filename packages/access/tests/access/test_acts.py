"""Requests as actions on resources, without a database."""

from __future__ import annotations

from hashrange_access.judging.acts import acts
from hostile.seeds import MAIN, REQUESTS


def test_searches_name_an_index_and_no_condition_keys() -> None:
    [request] = REQUESTS["SearchVectors"]
    [act] = acts("SearchVectors", request)
    assert (act.action, act.table, act.index, act.items, act.keys) == (
        "SearchVectors",
        MAIN,
        "nearby",
        None,
        {},
    )


def test_global_tables_are_resources_of_their_own() -> None:
    request = {"GlobalTableName": MAIN, "ReplicationGroup": [{"RegionName": "eu-west-1"}]}
    made = acts("CreateGlobalTable", request)
    assert [(act.table, act.resource) for act in made] == [("", f"global-table/{MAIN}"), (MAIN, "")]
    assert len(acts("DescribeGlobalTable", {"GlobalTableName": MAIN})) == 1
