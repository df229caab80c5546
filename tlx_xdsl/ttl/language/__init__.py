"""The TTL language of kernels for Tenstorrent's cores: `import tlx_xdsl.ttl.language as ttl`.

Each name is documented in the module of its topic. In signatures, arguments are what kernels pass: tensors, blocks,
indices and numbers that are known at compile time.
"""

from __future__ import annotations

from typing import Any

from . import block, buffers, kernel as _kernel, math, tensors
from .buffers import *
from .kernel import *
from .tensors import *

__all__ = ["block", "math"]
__all__ += _kernel.__all__
__all__ += buffers.__all__
__all__ += tensors.__all__


def __getattr__(name: str) -> Any:
    """Functions of `math` that tt-lang has in `ttl`, too: `ttl.exp` is `ttl.math.exp`."""
    if name in math.__all__:
        return getattr(math, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
