"""What triggers add to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="triggers",
    about="functions on the changes of a table",
    commands={
        "stream": Command("Watch the changes of a table.", "hashrange_triggers.commands.stream:command"),
        "trigger": Command(
            "Run functions on the changes of a table.", "hashrange_triggers.commands.trigger:command"
        ),
    },
    testing={"trigger": "hashrange_triggers.testing:Trigger"},
)
