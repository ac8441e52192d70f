"""The other simulator: @cloud-copilot/iam-simulate, a Node.js program in a process of its own.

Its licence is AGPL. The tests run it, unmodified, from the packages that `npm ci` puts into node/; nothing of
it is in Hashrange.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judges.cases import ACCOUNT, Case

NODE = Path(__file__).resolve().parent / "node"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What it decides: "Allowed", "ExplicitlyDenied", "ImplicitlyDenied", or "error" for a case that it does
    not take. `ignored` are the keys that a request of this action does not have."""

    decision: str
    ignored: tuple[str, ...] = ()
    error: str = ""


def is_installed() -> bool:
    return shutil.which("node") is not None and (NODE / "node_modules" / ".installed").exists()


def decide(cases: Sequence[Case], seconds_max: float = 600) -> list[Verdict]:
    """The verdict on each case. Raises RuntimeError if the program fails."""
    lines = [json.dumps({name: getattr(case, name) for name in Case.__slots__} | {"account": ACCOUNT})
             for case in cases]  # fmt: skip
    ended = subprocess.run(
        ["node", str(NODE / "simulate.mjs")],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    if ended.returncode or len(answers) != len(cases):
        raise RuntimeError(f"the simulator ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return [
        Verdict(answer["decision"], tuple(answer["ignored"]), json.dumps(answer.get("errors")))
        for answer in answers
    ]
