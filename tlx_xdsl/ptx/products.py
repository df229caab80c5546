"""Products of tensor cores (PTX ISA, "mma", "wgmma.mma_async", "tcgen05.mma").

PTX promises that products are exact and sums have at least the precision of the accumulator, in any order. Here the
products along K of an instruction are added in f32 (f16 accumulators too), in the order of numpy's matrix product, and
the accumulator after that; integers are exact.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import truncate_tf32

ELEMENTS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "f64": np.float64,
}  # fmt: skip
"""The types of A and B."""


def multiply(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None, result: np.dtype[Any]) -> NDArray[Any]:
    """`a @ b + c` of matrices or of stacks of them; f32 elements are tf32, whose low bits play no part."""
    if result.kind == "i":
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
        total = exact if c is None else exact + c
        return (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    if result == np.float64:
        product = np.matmul(a, b)
        return product if c is None else product + c
    product = np.matmul(_single(a), _single(b))
    if c is not None:
        product += c
    return product.astype(result) if result != np.float32 else product


def _single(values: NDArray[Any]) -> NDArray[Any]:
    return truncate_tf32(values) if values.dtype == np.float32 else values.astype(np.float32)
