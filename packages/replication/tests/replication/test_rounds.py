"""Rounds of kills, outages and restores, judged; `make copy-rounds` plays more."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from copy_power import Cuts
from copy_rounds import Round
from copy_servers import ServerRound
from crash.machine import build
from hashrange_replication import place

ROUNDS = int(os.environ.get("HASHRANGE_COPY_ROUNDS", "0"))
SEED = int(os.environ.get("HASHRANGE_COPY_SEED", "1"))
STORES = range(SEED, SEED + (ROUNDS or 12))
SERVERS = range(SEED, SEED + (ROUNDS or 2))
CUTS = ROUNDS or 4
PARTS = 4


@pytest.mark.parametrize("part", range(min(PARTS, len(STORES))))
def test_no_restore_lacks_what_was_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(place, "PATIENCE", ())
    counts: Counter[str] = Counter()
    for seed in STORES[part::PARTS]:
        one = Round(tmp_path / f"{seed}", seed)
        one.play()
        counts.update(one.counts)
        shutil.rmtree(tmp_path / f"{seed}")
    print(dict(sorted(counts.items())))
    assert counts["writes"] > 0
    assert counts["restores"] > 0


@pytest.mark.parametrize("part", range(min(PARTS, len(SERVERS))))
def test_no_server_that_is_killed_loses_what_it_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    counts: Counter[str] = Counter()
    for seed in SERVERS[part::PARTS]:
        one = ServerRound(tmp_path / f"{seed}", seed, acks=seed % 2 == 0)
        one.play(lives=3 if ROUNDS else 2)
        counts.update(one.counts)
        shutil.rmtree(tmp_path / f"{seed}")
    print(dict(sorted(counts.items())))
    assert counts["writes ok"] > 0
    assert counts["restores"] > 0


@pytest.mark.parametrize("acks", [True, False])
def test_a_copy_goes_on_after_power_cuts(tmp_path: Path, acks: bool) -> None:
    library = build(tmp_path)
    if library is None:
        pytest.skip("crashes of the machine need Linux and a C compiler, cc")
    cuts = Cuts(tmp_path, library, SEED, acks=acks)
    cuts.play(CUTS)
    print(dict(sorted(cuts.counts.items())))
    assert cuts.counts["writes"] > 0
