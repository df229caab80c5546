"""Memory of launches whose programs hand sums on to each other: where the arrays of the launch are.

Launches of one stream follow each other, and each leaves zeros where it found them: they share what is zero, which is
cleared once. Launches of other streams, which may run at the same time, have their own. While a CUDA graph is captured
all is allocated anew, in the graph's pool, and cleared in the graph.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..driver.host_values import is_descriptor, numpy_dtype

_ZEROS: dict[tuple[Any, ...], Any] = {}
"""Zeros of each GPU, stream and type; the memory grows with the launches."""
_TURN = threading.Lock()


def memory_beside(values: Iterable[Any], count: int, dtype: str, *, is_zero: bool) -> Any:
    """Return an array of `count` elements that a launch with these arguments may use: a tensor beside tensors."""
    bases = [value.base if is_descriptor(value) else value for value in values]
    tensor = next((base for base in bases if callable(getattr(base, "data_ptr", None))), None)
    if tensor is None:
        element = numpy_dtype(dtype)
        assert element is not None, dtype
        return np.zeros(count, element)
    torch: Any = sys.modules["torch"]
    element, device = getattr(torch, _NAMES[dtype]), tensor.device
    if not is_zero:
        return torch.empty(count, dtype=element, device=device)
    if device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return torch.zeros(count, dtype=element, device=device)
    key = (device, torch.cuda.current_stream(device).cuda_stream, element)
    with _TURN:
        found = _ZEROS.get(key)
        if found is None or found.numel() < count:
            found = _ZEROS[key] = torch.zeros(count, dtype=element, device=device)
    return found


_NAMES = {"fp32": "float32", "i32": "int32"}
