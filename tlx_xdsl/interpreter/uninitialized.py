"""Reads of arrays that were declared uninitialized: faults, or warnings, unless something has written there.

Shared and tensor memory have rules of their own (`unwritten.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.numerics.uninitialized import UninitializedArray
from tlx_xdsl.text.diagnostics import report_warning

from .faults import Fault, fault_at, remedy


@dataclass(eq=False, slots=True)
class UninitializedReads:
    """Refuses reads of bytes that nothing has written, or only warns of them."""

    only_warns: bool = False
    reported: set[tuple[Operation, str]] = field(default_factory=set[tuple[Operation, str]])
    """The operations and arrays of which a warning was given."""
    read: set[str] = field(default_factory=set[str])
    """The arrays of which something was read."""
    writers: dict[str, Operation] = field(default_factory=dict[str, Operation])
    """The operation that has written last to each array."""

    def unfilled(self, name: str, array: Any) -> Fault | None:
        """The report of an array that was declared uninitialized, is only written here, and in part.

        It is a result, then, of which the host reads what nothing has written.
        """
        op = self.writers.get(name)
        if op is None or name in self.read or not isinstance(array, UninitializedArray):
            return None
        if (written := array.written_elements()) is None:
            return None
        missing = np.frombuffer(written.tobytes(), np.uint8).reshape(-1, array.itemsize).min(1) == 0
        if not (count := int(missing.sum())):
            return None
        first = [int(i) for i in np.unravel_index(int(np.flatnonzero(missing)[0]), array.shape)]
        left = f"{count} of its {array.size} elements {'is' if count == 1 else 'are'} left so, element {first} first"
        return fault_at(
            op,
            f"'{name}' is declared uninitialized, and {left}",
            ("it is written here last; what a kernel is not to fill need not be passed: slice the array",),
        )

    def check(self, op: Operation, name: str, found: NDArray[np.uint8], first: int) -> None:
        """Check a read of elements, of whose bytes `found` says whether they are written: a row for each element.

        `first` is the place of the element in the array, in bytes, that is the first to be uninitialized.
        Raises Fault unless only warnings are asked for.
        """
        bad = int((~found.all(1)).sum())
        message = f"'{name}' in global memory is read before it is written"
        count = f"{bad} of {len(found)} elements, byte {first} of the array first"
        note = remedy(
            f"'{name}' is declared uninitialized: the host must fill it before the launch, or the kernel must write "
            "first"
        )
        if not self.only_warns:
            raise fault_at(op, f"{message}: {count}", (note,))
        if (op, name) not in self.reported:
            self.reported.add((op, name))
            report_warning(op, message, (count, note))
