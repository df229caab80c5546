"""The TTL language of kernels for Tenstorrent's cores: `import tlx_xdsl.language.ttl as ttl`.

Each name is documented in the module of its topic. In signatures, arguments are what kernels pass: tensors, blocks,
indices and numbers that are known at compile time.
"""

from __future__ import annotations

from tlx_xdsl.language.ttl import block, buffers, grid, kernel as _kernel, math, pipes, tensors
from tlx_xdsl.language.ttl.buffers import *
from tlx_xdsl.language.ttl.grid import *
from tlx_xdsl.language.ttl.kernel import *
from tlx_xdsl.language.ttl.pipes import *
from tlx_xdsl.language.ttl.tensors import *

__all__ = ["block", "math"]
__all__ += _kernel.__all__
__all__ += buffers.__all__
__all__ += grid.__all__
__all__ += pipes.__all__
__all__ += tensors.__all__
