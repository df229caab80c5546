"""Arrays for kernels that the host does not fill."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.numerics.uninitialized import UninitializedArray

from ..driver.host_values import numpy_dtype


def uninitialized(shape: int | Sequence[int], dtype: Any = "fp32") -> NDArray[Any]:
    """An array in whose memory nothing has been written, as `torch.empty` makes them.

    In the interpreter a read of what neither a kernel nor `array[...] = value` has written is a fault. `dtype` is an
    element type by Triton's, numpy's or torch's name. Raises TypeError for one that kernels do not have.
    """
    found = numpy_dtype(np.dtype(dtype) if isinstance(dtype, type) else dtype)
    if found is None:
        raise InputTypeError(f"expected an element type such as fp16, bf16, float32 or i32, found {dtype!r}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return UninitializedArray.of(tuple(index(size) for size in sizes), found)
