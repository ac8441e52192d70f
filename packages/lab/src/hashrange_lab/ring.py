"""What the lab adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="lab",
    about="throttling and late reads as on AWS, loads, recordings, the busiest keys, money",
    commands={
        "costs": Command(
            "Show what a running server's requests would cost on AWS, and how to save money.",
            "hashrange_lab.commands.costs:command",
        ),
        "lab": Command(
            "Throttle requests and make reads lag, on a running server.", "hashrange_lab.commands.lab:command"
        ),
        "load": Command(
            "Send a benchmark load to an endpoint, and measure it.",
            "hashrange_lab.commands.load:command",
        ),
        "record": Command(
            "Record the requests to a running server.", "hashrange_lab.commands.record:command"
        ),
        "replay": Command(
            "Send a recorded load again, and compare the answers.", "hashrange_lab.commands.replay:command"
        ),
        "top": Command(
            "Show the busiest keys of a running server, live.", "hashrange_lab.commands.top:command"
        ),
    },
    serving="hashrange_lab.commands.serving:PART",
    options=("--costs", "--prices", "--record", "--record-values", "--record-dir", "--record-bytes-max"),
    endpoints="hashrange_lab.admin:ENDPOINTS",
    pages="hashrange_lab.pages:PAGES",
    paths=(
        "/v1/costs",
        "/v1/heat",
        "/v1/lab",
        "/v1/recording",
        "/console/capacity",
        "/console/costs",
        "/console/heat",
        "/console/lab",
    ),
    metrics="hashrange_lab.behaviour.metrics:families_of",
    parts={
        "lab": "hashrange_lab.behaviour:Lab",
        "recordings": "hashrange_lab.recordings.recording:Recordings",
    },
)
