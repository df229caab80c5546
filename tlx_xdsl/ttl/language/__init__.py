"""The TTL language of kernels for Tenstorrent's cores: `import tlx_xdsl.ttl.language as ttl`.

Each name is documented in the module of its topic. In signatures, arguments are what kernels pass: tensors, blocks,
indices and numbers that are known at compile time.
"""

from __future__ import annotations

import sys
from typing import Any

from . import block, buffers, kernel as _kernel, math, tensors
from .buffers import *
from .kernel import *
from .tensors import *

__all__ = ["block", "math"]
__all__ += _kernel.__all__
__all__ += buffers.__all__
__all__ += tensors.__all__

DataflowBuffer, TensorBlock, CopyTransferHandler = buffers.CircularBuffer, buffers.Block, buffers.Transfer
"""tt-lang's names of classes, which annotations use."""

_ELEMENTS = "a thread moves blocks, it does not look into them"
_DEVICES = "a kernel runs on one device"
ABSENT = {
    "raw_element_read": _ELEMENTS,
    "raw_element_write": _ELEMENTS,
    "read_index": _ELEMENTS,
    "wait_any": "wait for the transfers in the order of the text",
    "ReceiveRequest": "receive by ttl.copy(pipe, block)",
    "ReadyReceive": "receive by ttl.copy(pipe, block)",
    "DeviceDomain": _DEVICES,
    "DeviceRef": _DEVICES,
    "TransferGraph": _DEVICES,
    "make_tensor_backed_dfb": "copy the tensor into a buffer of ttl.make_dataflow_buffer_like",
    "make_dfb_allocation_group": "buffers that are never alive together share memory anyway",
    "call_extern_func": "there are no functions in C++",
    "atom": "write the threads as functions of an operation",
}
"""Names of tt-lang that are not here, and what to do."""


def __getattr__(name: str) -> Any:
    """Names that tt-lang has here, too: `ttl.exp` is `ttl.math.exp`, `from ttl import ttl` gives this module."""
    if name == "ttl":
        return sys.modules[__name__]
    if name in math.__all__:
        return getattr(math, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
