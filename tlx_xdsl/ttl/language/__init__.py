"""The TTL language of kernels for Tenstorrent's cores: `import tlx_xdsl.ttl.language as ttl`.

Each name is documented in the module of its topic. In signatures, arguments are what kernels pass: tensors, blocks,
indices and numbers that are known at compile time.
"""

from __future__ import annotations

from . import block, buffers, grid, kernel as _kernel, math, pipes, tensors
from .buffers import *
from .grid import *
from .kernel import *
from .pipes import *
from .tensors import *

__all__ = ["block", "math"]
__all__ += _kernel.__all__
__all__ += buffers.__all__
__all__ += grid.__all__
__all__ += pipes.__all__
__all__ += tensors.__all__
