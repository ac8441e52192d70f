"""Pictures, painted: a landscape that only the photo's name decides."""

from __future__ import annotations

import random

SKIES = [("#fbc2a0", "#7c6bb0"), ("#ffe3b0", "#e8788a"), ("#cfe8f5", "#5b8fc9"), ("#1c2a4a", "#5a4a7a"),
         ("#f6d5c3", "#4f8a8b")]  # fmt: skip


def picture(name: str) -> str:
    """An SVG: a sky, a sun or moon, and ridges one before the other."""
    chance = random.Random(name)
    top, bottom = chance.choice(SKIES)
    dark = top == "#1c2a4a"
    sun_x, sun_y, size = chance.randrange(60, 340), chance.randrange(40, 130), chance.randrange(16, 34)
    shine = "#f4f1de" if dark else "#fff4d6"
    parts = [f'<circle cx="{sun_x}" cy="{sun_y}" r="{size}" fill="{shine}" opacity=".9"/>']
    hue = chance.randrange(360)
    for layer in range(4):
        height = 150 + layer * 34
        points = [(x, height + chance.randrange(-34 + layer * 5, 24)) for x in range(0, 441, 40)]
        line = " ".join(f"{x},{y}" for x, y in points)
        light = (46 if not dark else 30) - layer * 9
        parts.append(f'<polygon points="0,300 {line} 440,300" fill="hsl({hue + layer * 8} 34% {light}%)"/>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" preserveAspectRatio="xMidYMid slice">'
        f'<defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="{top}"/><stop offset="1" '
        f'stop-color="{bottom}"/></linearGradient></defs><rect width="400" height="300" fill="url(#sky)"/>'
        f"{''.join(parts)}</svg>"
    )
