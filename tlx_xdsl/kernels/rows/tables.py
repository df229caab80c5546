"""Arguments of functions of rows: tensors of one shape as rows, vectors beside them, and results that are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..calls.launching import Launch
from ..calls.operands import check_shape, check_types, empty, operand, rows_of, unit_of, width_of
from ..calls.plans import Prepared

DTYPES = ("fp16", "bf16", "fp32")


def prepared(function: str, named: dict[str, Any], alike: str, results: str, launch: Callable[..., Launch]) -> Prepared:
    """The call with its tensors by name, and its launch where they have elements; results that are None are made.

    All that are `alike`, and the results, have the type and the shape of the first one. `launch` is called with all
    tensors by name. Raises TypeError and ValueError.
    """
    given = [*alike.split(), *(each for each in results.split() if named[each] is not None)]
    first, *others = (operand(function, each, named[each]) for each in given)
    check_types((first, *others), DTYPES)
    for each in others:
        check_shape(each, first.shape, f"that of '{first.name}'")
    named |= {each: empty(first, first.shape) for each in results.split() if named[each] is None}
    return Prepared(named, () if 0 in first.shape else (launch(**named),))


class Tables:
    """Operands of one type and one shape as rows, and vectors as long as a row; what is None is not there.

    `first` and `rows` are the first operand and its rows, `vectors` how many vectors there are, and `arguments` those
    of a kernel: `pointers`, distances of rows, and how long these are, both counted in `unit` elements (`unit_of`).

    Raises TypeError for other types, ValueError for other shapes and strides.
    """

    def __init__(self, function: str, tables: Mapping[str, Any], **vectors: Any) -> None:
        given = {**tables, **vectors}.items()
        found = {name: None if value is None else operand(function, name, value) for name, value in given}
        there = tuple(each for each in found.values() if each is not None)
        check_types(there, DTYPES)
        self.operands = tuple(each for each in there if each.name in tables)
        self.first = self.operands[0]
        for each in self.operands:
            check_shape(each, self.first.shape, f"that of '{self.first.name}'")
        self.all_rows = tuple(map(rows_of, self.operands))
        self.rows = self.all_rows[0]
        for each in there[len(self.operands) :]:
            check_shape(each, (self.rows.columns,), f"the last dimension of '{self.first.name}'")
            rows_of(each)
        self.vectors = len(there) - len(self.operands)
        self.unit = unit_of(there, self.all_rows)
        self.pointers = {f"{name}_ptr": each for name, each in found.items()}
        distances = {
            each.name: rows.distance // self.unit for each, rows in zip(self.operands, self.all_rows, strict=True)
        }
        strides = {f"{name}_stride": distances.get(name) for name in tables}
        self.arguments = {**self.pointers, **strides, "COLUMNS": self.rows.columns // self.unit}

    @property
    def width(self) -> int:
        """The elements of a vector of 16 bytes where rows that begin anywhere do so equally in all, else 1."""
        return width_of(self.operands, self.all_rows) if self.unit == 1 else 1
