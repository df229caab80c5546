"""Reads of bytes that the buffer's family has not written last: a fault, or a warning and poison.

On a GPU, uninitialized memory holds what was there before. Some kernels read it on purpose, since nothing
comes of it: an attention that rescales its accumulator before the first product, which then overwrites it. Such a
read is a fault, unless the launch only warns of it. Then what is read is NaN, so that it shows in whatever is computed
from it; written back, it is data like any other, and is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.dialects.ttng import PAIR_HALVES
from tlx_xdsl.numerics.arrays import Array, Booleans, is_float, poison
from tlx_xdsl.text.diagnostics import report_warning

from .faults import Fault, UninitializedRead, fault_at, place_note
from .memory import UNINITIALIZED, Family, View
from .users import lines, writers

_HINT = """with --unwritten warn (in Python unwritten="warn") it is NaN, for kernels where nothing comes of it"""


@dataclass(eq=False, slots=True)
class UninitializedReadPolicy:
    """Refuses reads of bytes that the buffer's family has not written last, or only warns of uninitialized ones."""

    note: Callable[[], str] | None = None
    """Names the programs that run, in a warning; None where an uninitialized read is a fault."""
    reported: set[tuple[Operation, Operation]] = field(default_factory=set[tuple[Operation, Operation]])
    """The operations and allocations of which a warning was given."""

    def read(self, op: Operation, view: View, values: Array) -> Array:
        """Return `values`, with poison for each element with an uninitialized byte.

        Poison is NaN, or an integer whose every bit is set. Raises Fault for bytes that another family has written,
        and unless the launch only warns, for uninitialized ones.
        """
        owners = view.memory.writers
        offsets = [view.offsets + (copy + byte) for copy in (0, *view.copies) for byte in range(view.dtype.itemsize)]
        stacked = np.stack([owners[offset] for offset in offsets])
        if np.isin(stacked, _same(view)).all():
            return values
        missing = np.asarray(self._missing(op, view, stacked).any(0))
        self._warn(op, view, _count(missing))
        values = np.array(values)
        # The bits of an element that is written in part may be any number.
        values[missing] = np.nan if is_float(view.dtype) else poison((), view.dtype)
        return values

    def read_raw(self, op: Operation, view: View, owners: NDArray[np.int32]) -> None:
        """Warn of a read of the first bytes of a view, which those families have written; poison has all bits set.

        Raises Fault as `read` does.
        """
        missing = self._missing(op, view, owners)
        self._warn(op, view, f"{int(missing.sum())} of {missing.size} bytes")

    def _missing(self, op: Operation, view: View, owners: NDArray[np.int32]) -> Booleans:
        if self.note is None:
            raise self.refusal(op, view)
        missing = owners == UNINITIALIZED
        if not (missing | np.isin(owners, _same(view))).all():
            raise self.refusal(op, view, overwritten=True)
        return missing

    def _warn(self, op: Operation, view: View, count: str) -> None:
        if self.note is None or (op, view.family.op) in self.reported:
            return
        self.reported.add((op, view.family.op))
        reads_as = "NaN" if is_float(view.dtype) else "a number whose every bit is set"
        # What differs between slots and programs is in the notes: each message is reported once for a line.
        report_warning(
            op,
            f"'{view.family.name}' is read before it is written, and reads as {reads_as}",
            (f"of '{view.name}' that is {count}", *_written_at(view.family), self.note()),
        )

    def refusal(self, op: Operation, view: View, *, overwritten: bool = False) -> Fault:
        """The fault of a read of a view, some bytes of which its family has not written last.

        With `overwritten` it is about those that another one has.
        """
        found = view.memory.writers[view.offsets]
        bad = ~np.isin(found, _same(view))
        if overwritten:
            bad &= found != UNINITIALIZED
        if not bad.any():
            # Only a part of an element is of another family.
            return fault_at(op, f"'{view.name}' is partly overwritten")
        number = int(found[bad][0])
        if number == UNINITIALIZED:
            notes = _written_at(view.family)
            if view.memory.name == "tensor memory":
                notes.append(_HINT)
            return fault_at(op, f"'{view.name}' is read before it is written: {_count(bad)}", notes, UninitializedRead)
        other = view.memory.placement.families[number - 1]
        by = f"'{other.name}', which lies at the same place, has overwritten it"
        return fault_at(
            op,
            f"'{view.name}' is read, but {by}: {_count(bad)}",
            (place_note(f"'{other.name}' is allocated at", other.op), *_written_at(other)),
            UninitializedRead,
        )


def _same(view: View) -> list[int]:
    """The families whose data a view may read: its own, and those of a pair's halved accumulators of the same type.

    What a pair of CTAs adds up in 64 rows of each is read through a buffer of 128 rows that shares the memory.
    """
    families, own = view.memory.placement.families, view.family
    type_ = own.op.results[0].type
    halved = [each for each in families if PAIR_HALVES in each.op.attributes and each.op.results[0].type == type_]
    return [own.number, *(each.number for each in halved)]


def _count(bad: Booleans) -> str:
    return f"{int(bad.sum())} of its {bad.size} elements, element {[int(i) for i in np.argwhere(bad)[0]]} first"


def _written_at(family: Family) -> list[str]:
    return [f"'{family.name}' is written at {line}" for line in lines(writers(family.op))]
