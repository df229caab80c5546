"""Decisions that a search tries beside the compiler's own, and the order in which it does.

The search goes along one decision at a time, and keeps the best value for the next: what matters most comes first. A
value that makes the same source as another costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

FEW_PROGRAMS = 66
"""Programs that leave half of an H200's multiprocessors idle: up to here loops are split."""

ALTERNATIVES: tuple[tuple[str, Sequence[Any]], ...] = (
    ("split", (2, 4, 8)),
    ("persistent", (True,)),
    ("groups", (1, 2)),
    ("join", (False,)),
    ("order", (0, 1, 2)),
    ("outer_depth", (1, 2)),
    ("turns", (False,)),
    ("alias", (True,)),
    ("pieces", (4, 8)),
    ("pipeline", (False,)),
    ("transpose", (False,)),
    ("depth", (2, 3, 4, 5, 6)),
    ("delay_scales", (False,)),
    ("split_masks", (False,)),
    ("stage_stores", (False,)),
    ("overlap", (False,)),
)
"""Values of each decision beside the compiler's own, in the order in which decisions are looked at."""


def alternatives(decisions: Any, given: Mapping[str, Any], programs: int) -> list[tuple[str, Sequence[Any]]]:
    """Return what there is to choose: decisions that are not given, with their values.

    `programs` is how many a launch of the plain kernel has.
    """
    known = {each.name for each in fields(decisions)}
    if programs > FEW_PROGRAMS:
        known.discard("split")
    return [(name, values) for name, values in ALTERNATIVES if name in known and name not in given]
