"""The TTL language of kernels for Tenstorrent's cores: `import tlx_xdsl.ttl.language as ttl`.

Each name is documented in the module of its topic. In signatures, arguments are what kernels pass: tensors, blocks,
indices and numbers that are known at compile time.
"""

from __future__ import annotations

from tlx_xdsl.ttl.language import block, buffers, grid, kernel as _kernel, math, pipes, tensors
from tlx_xdsl.ttl.language.buffers import *
from tlx_xdsl.ttl.language.grid import *
from tlx_xdsl.ttl.language.kernel import *
from tlx_xdsl.ttl.language.pipes import *
from tlx_xdsl.ttl.language.tensors import *

__all__ = ["block", "math"]
__all__ += _kernel.__all__
__all__ += buffers.__all__
__all__ += grid.__all__
__all__ += pipes.__all__
__all__ += tensors.__all__
