"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with columns of equal width; columns whose cells below the first row are numbers stand to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numeric = [all(row[column].replace(",", "").isdigit() for row in rows[1:]) for column in range(len(rows[0]))]
    return [
        "    "
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
