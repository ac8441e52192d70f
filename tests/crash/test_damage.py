"""Each kind of damage is reported, without a hang or a traceback. `python -m crash.damage` plays more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SECONDS_MAX = 300


def test_a_damaged_store_loses_nothing_in_silence() -> None:
    played = subprocess.run(
        [sys.executable, "-m", "crash.damage", "--doses", "1"],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.count("whole") > 5
    assert played.stdout.count("mended\n") > 5
