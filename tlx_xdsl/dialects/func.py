"""Kernels as functions of upstream MLIR: which of the arguments of a `func.func` the launch gives.

```mlir
func.func @add(%x: memref<*xf32>, %n: i32, %pid_x: i32, %pid_y: i32, %pid_z: i32)
    attributes {tt.program_ids = 3 : i32} { ... }
```
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.utils.exceptions import VerifyException

PROGRAM_IDS = "tt.program_ids"
"""Attribute of a `func.func` that is a kernel: the number of its last arguments, all i32, that are the coordinates of
the program. 3: its index in the grid along x, y and z; 6: after these the sizes of the grid along x, y and z."""

COUNTS = (0, 3, 6)


def program_arguments(function: func.FuncOp) -> int:
    """The number of the last arguments that the launch gives, by the attribute `tt.program_ids`; 0 without it.

    Raises VerifyException where the attribute, or the type of one of these arguments, is another.
    """
    attribute = function.attributes.get(PROGRAM_IDS)
    if attribute is None:
        return 0
    count = attribute.value.data if isinstance(attribute, IntegerAttr) else None
    if count not in COUNTS:
        raise VerifyException(f"'{PROGRAM_IDS}' must be one of {', '.join(map(str, COUNTS))}, found {attribute}")
    if not _ends_in_coordinates(function, count):
        raise VerifyException(f"'{PROGRAM_IDS}' says that the last {count} arguments are i32, which they are not")
    return count


def assume_program_arguments(function: func.FuncOp, given: int) -> None:
    """Set the attribute on a function without it, where a caller gives values for all but 3 or 6 last i32 arguments."""
    missing = len(function.function_type.inputs) - given
    if PROGRAM_IDS not in function.attributes and missing in COUNTS[1:] and _ends_in_coordinates(function, missing):
        function.attributes[PROGRAM_IDS] = IntegerAttr(missing, i32)


def _ends_in_coordinates(function: func.FuncOp, count: int) -> bool:
    types = function.function_type.inputs.data
    return count <= len(types) and all(type_ == i32 for type_ in types[len(types) - count :])
