"""Arrays of the host that are declared uninitialized, as `torch.empty` makes them: reads before a write are faults.

Which bytes have been written is kept with the memory, not with a launch: what one launch has written the next one may
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .arrays import Array, Bytes, Dtype, poison


@dataclass(frozen=True, eq=False)
class Record:
    """Memory, and which of its bytes have been written."""

    data: Bytes
    """Kept alive here: no other array can get its addresses."""
    written: Bytes
    """1 for each byte that was, 0 for the others."""

    def of(self, start: int, end: int) -> Bytes | None:
        """Return which bytes between two addresses have been written; None where that is other memory."""
        first = start - self.data.ctypes.data
        last = first + end - start
        return self.written[first:last] if first >= 0 and last <= len(self.data) else None


class UninitializedArray(np.ndarray[Any, Dtype]):
    """An array whose elements count as uninitialized until they are written, by a kernel or by `array[...] = `.

    Views share that, and so does what is assigned from such an array. Results of other operations are ordinary arrays
    in that nothing is checked for them.
    """

    record: Record | None = None

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: Dtype) -> UninitializedArray:
        """An array of NaN, or of integers whose every bit is set."""
        values = np.ascontiguousarray(poison(shape, dtype)).reshape(shape)
        found = values.view(cls)
        data = values.reshape(-1).view(np.uint8)
        found.record = Record(data, np.zeros(len(data), np.uint8))
        return found

    def __array_finalize__(self, obj: Any) -> None:
        """Share the record with the array that this one was made of; what is no view of it has other addresses."""
        self.record = getattr(obj, "record", None)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write elements."""
        super().__setitem__(index, value)
        if (mine := self.written_elements()) is None:
            return
        given = value.written_elements() if isinstance(value, UninitializedArray) else None
        is_same = given is not None and value.dtype == self.dtype
        mine[index] = given if is_same else np.void(b"\1" * self.itemsize)

    def copy(self, order: Any = "C") -> UninitializedArray:
        """A copy, of which the same elements are uninitialized."""
        found = UninitializedArray.of(self.shape, self.dtype)
        found[...] = self
        return found

    def written_elements(self) -> Array | None:
        """An array like this one that has 1 in each byte that has been written."""
        if self.record is None:
            return None
        start = int(self.ctypes.data)
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True) if size)
        bytes_ = self.record.of(start, start + last + self.itemsize) if self.size else None
        if bytes_ is None:
            return None
        return np.ndarray(self.shape, f"V{self.itemsize}", cast(Any, bytes_), strides=self.strides)
