"""The torn right end of a bar whose end nobody knows: what of the bar is left white.

`assets/timeline_torn.js` does the same on the page.
"""

from collections.abc import Iterator

from rl_insight.visualizers.ink import Box

END_UNKNOWN = "end unknown"
AT_LEAST = "≥ "
"""Before the duration of such a bar."""

# Design pixels: how deep the teeth are and how high each is, and a strip of a bar too low for them.
_DEEP, _TOOTH, _STRIP = 9.0, 7.0, 2.0
_LEAST_HEIGHT = 8.0

Outline = list[tuple[float, float]]


def torn(box: Box, scale: float) -> Iterator[Outline]:
    """Outlines of what is missing at the right end of the bar `box`, at `scale` pixels to 1/100
    inch: a saw's teeth, or where the bar is too low to show any, two upright strips.
    """
    left, top, right, bottom = box
    if bottom - top < _LEAST_HEIGHT * scale:
        strip = max(1.0, min(round(_STRIP * scale), (right - left) // 5))
        for end in (right - strip, right - 3 * strip):
            if end - strip > left:
                yield [(end - strip, top), (end, top), (end, bottom), (end - strip, bottom)]
        return
    deep = min(_DEEP * scale, (right - left) / 2)
    teeth = max(2, round((bottom - top) / (_TOOTH * scale)))
    edge = [
        (right if corner % 2 else right - deep, top + (bottom - top) * corner / (2 * teeth))
        for corner in range(2 * teeth + 1)
    ]
    yield [(right, top), *edge, (right, bottom)]
