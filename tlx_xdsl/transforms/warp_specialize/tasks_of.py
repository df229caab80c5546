"""Facts about the tasks of a specialised kernel: how many copies a partition will have."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase

from tlx_xdsl.dialects import ttg

REPLICAS = "tlx.replicas"
"""The attribute with the number of copies of each partition, until `tlx-ws-replicate-tasks`; of a function before."""

NOTE = "tlx.note"
"""The attribute with the reason of a decision, which the written source has as a comment."""

TILES = "tlx.tiles"
"""The attribute of a loop whose turns were programs of the plain kernel, until `tlx-ws-stage-stores`: their accesses to
memory have no order."""

UNEVEN, REST = "tlx.uneven", "tlx.rest"
"""Attributes, until `tlx-ws-take-turns`: of a loop that some copies of a task turn more often than others, and of the
loop after it with the turns that a copy lacks."""


def copies_of(tasks: ttg.WarpSpecializeOp, number: int) -> int:
    """Return the number of copies of a partition."""
    found = tasks.attributes.get(REPLICAS)
    return int(found.get_values()[number]) if isinstance(found, DenseArrayBase) else 1
