"""Versions of Triton that read the same layout differently; found by asking each for random layouts.

| layout | until | how it was read | how it is read since |
|---|---|---|---|
| `blocked`, a thread's tile larger than the tensor | 3.9 | all registers stay, some hold copies | they do not exist |
| `nvmma_shared`, transposed, without swizzle | 3.8 | row-major all the same | column-major |
| `tensor_memory_encoding`, twoCTAs with 64 rows | 3.8 | all columns are halved | columns of a block are halved |
| `dot_op` of mma.sync with 8 rows (f64) | 3.8 | as that of 16 rows and twice the K | as mma.m8n8k4 has it |
"""

from __future__ import annotations

from typing import TypeAlias

Version: TypeAlias = tuple[int, int]
"""Major and minor version of Triton."""

NEWEST: Version = (3, 9)
"""The version whose reading counts unless another is named."""

REDUNDANT_REGISTERS_UNTIL: Version = (3, 9)
UNSWIZZLED_IS_ROW_MAJOR_UNTIL: Version = (3, 8)
PAIR_HALVES_ALL_COLUMNS_UNTIL: Version = (3, 8)
F64_OPERANDS_SINCE: Version = (3, 8)
