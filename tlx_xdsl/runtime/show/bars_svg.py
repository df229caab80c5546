"""Times as a picture: a bar for each, with its label on the left and its number after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import isfinite

from .storage_map_svg import CHARACTER, COLOURS

# Pixels.
_BARS, _ROW, _GAP, _HEAD, _EDGE = 420, 18, 5, 40, 12


def bars_as_svg(
    title: str,
    unit: str,
    bars: Sequence[tuple[str, float, str]],
    marked: Callable[[Sequence[float]], float] = min,
) -> str:
    """The bars (label, number, remark), from top to bottom, as the text of an SVG file; infinity has no bar.

    `marked` chooses the number whose bars have another colour.
    """
    finite = [number for _, number, _ in bars if isfinite(number)]
    left = _EDGE + CHARACTER * max((len(label) for label, _, _ in bars), default=0)
    remarks = CHARACTER * max((len(remark) for _, _, remark in bars), default=0)
    width = max(left + _BARS + 90 + remarks, 2 * _EDGE + 7.5 * len(title))
    height = _HEAD + len(bars) * (_ROW + _GAP) + _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" font-family="Helvetica,Arial,sans-serif" font-size="11">',
        f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_EDGE}" y="22" font-size="13" font-weight="bold">{escape(title)}</text>',
    ]
    for row, (label, number, remark) in enumerate(bars):
        top = _HEAD + row * (_ROW + _GAP)
        base = top + _ROW - 5
        parts.append(f'<text x="{left:.0f}" y="{base}" text-anchor="end">{escape(label)}</text>')
        text, end = remark, left + 6
        if isfinite(number):
            long = _BARS * number / max(finite)
            colour = COLOURS[2] if number == marked(finite) else COLOURS[0]
            parts.append(
                f'<rect x="{left + 6:.0f}" y="{top}" width="{max(long, 1):.1f}" height="{_ROW}" fill="{colour}"/>'
            )
            text, end = f"{number:.4g} {unit} {remark}".rstrip(), left + 10 + long
        parts.append(f'<text x="{end:.0f}" y="{base}">{escape(text)}</text>')
    return "\n".join([*parts, "</svg>"])
