"""Colours of stages: distinct to colour-blind eyes, and the same in every picture.

Paul Tol's «muted» scheme (personal.sron.nl/~pault), made for qualitative data and checked for the
common colour vision deficiencies.
"""

import colorsys
import hashlib
from collections.abc import Iterable

INDIGO, CYAN, TEAL, GREEN, OLIVE = "#332288", "#88CCEE", "#44AA99", "#117733", "#999933"
SAND, ROSE, WINE, PURPLE = "#DDCC77", "#CC6677", "#882255", "#AA4499"
PALETTE = (INDIGO, CYAN, TEAL, GREEN, OLIVE, SAND, ROSE, WINE, PURPLE)

# Stages that stand beside each other in a step get colours far apart. The names are canonical.
KNOWN = {
    "agent_loop_rollout": TEAL,
    "rollout_generate": TEAL,
    "actor_compute_log_prob": SAND,
    "ref_compute_log_prob": CYAN,
    "critic_compute_values": PURPLE,
    "reward": OLIVE,
    "train_batch": WINE,
    "critic_update": ROSE,
    "actor_update": INDIGO,
    "forward_backward": GREEN,
}


def assign(names: Iterable[str]) -> dict[str, str]:
    """A colour `#rrggbb` for each stage name.

    Known stages always have the same one. Others get theirs from a hash of the name, or the next
    that is free in this picture; beyond nine the palette comes again, lighter.
    """
    wanted = sorted(set(names))
    colours: dict[str, str] = {}
    used: set[str] = set()
    for name in wanted:
        if name in KNOWN and KNOWN[name] not in used:
            colours[name] = KNOWN[name]
            used.add(KNOWN[name])
    for name in wanted:
        if name not in colours:
            first = _hash(name) % len(PALETTE)
            turned = PALETTE[first:] + PALETTE[:first]
            choice = [*turned, *(lighter(colour, 0.45) for colour in turned)]
            colours[name] = next((shade for shade in choice if shade not in used), turned[0])
            used.add(colours[name])
    return {name: colours[name] for name in wanted}


def lighter(colour: str, amount: float) -> str:
    """`colour` mixed with white; 0 leaves it, 1 is white."""
    return _hex(channel + (1 - channel) * amount for channel in _channels(colour))


def darker(colour: str, amount: float) -> str:
    """`colour` mixed with black; 0 leaves it, 1 is black."""
    return _hex(channel * (1 - amount) for channel in _channels(colour))


def ink(colour: str) -> str:
    """Black or white, whichever is easier to read on `colour`."""
    red, green, blue = (
        channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in _channels(colour)
    )
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def tones(colour: str) -> tuple[str, str, str]:
    """Three tones beside `colour` for the ranges inside a stage, told apart from it and mutually.

    A dark colour is made lighter and a light one darker, so that the tones stay visible on it.
    """
    _, lightness, _ = colorsys.rgb_to_hls(*_channels(colour))
    if lightness < 0.42:
        return lighter(colour, 0.5), lighter(colour, 0.72), lighter(colour, 0.3)
    return darker(colour, 0.3), darker(colour, 0.5), darker(colour, 0.15)


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _hex(channels: Iterable[float]) -> str:
    return "#" + "".join(f"{round(channel * 255):02x}" for channel in channels)
