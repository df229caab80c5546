"""The parts of reports that commands print: lines with a name and a number, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Rows: TypeAlias = Sequence[tuple[str, int]]
"""What is counted, and the number."""


def times_section(times_ms: Mapping[str, float]) -> list[str]:
    """The lines about the time of each stage, in milliseconds, and of all."""
    lines = ["  time per stage, ms"]
    lines.extend(f"    {stage:<32}{milliseconds:9.1f}" for stage, milliseconds in times_ms.items())
    lines.append(f"    {'total':<32}{sum(times_ms.values()):9.1f}")
    return lines


def section(title: str, rows: Rows) -> list[str]:
    """A title and a line for each number."""
    return [f"  {title}", *(f"    {what:<32}{amount:9d}" for what, amount in rows)]


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
