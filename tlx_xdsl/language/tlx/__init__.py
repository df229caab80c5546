"""The `tlx` language of kernels: `import tlx_xdsl.language.tlx as tlx`.

Names and meaning are those of Meta's TLX. A *buffered tensor* is an array of buffers in shared or tensor memory;
`buf[i]` is buffer `i` of it. An *mbarrier array* holds barriers; `bars[i]` is barrier `i`. Sizes are in elements
unless a name or a sentence says bytes. One module per topic: buffers (`memory`), `barriers`, `cluster`, copies to and
from global memory (`copies`), the tensor cores (`mma`), 8-bit floats (`packed`), `tasks`, cluster launch control
(`clc`), `layouts`, several GPUs (`ranks`), `utility`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import barriers, clc, cluster, copies, layouts, memory, mma, packed, ranks, tasks, types, utility
from .amd import amd_only
from .barriers import *
from .clc import *
from .cluster import *
from .copies import *
from .layouts import *
from .memory import *
from .mma import *
from .packed import *
from .ranks import *
from .tasks import *
from .types import *
from .utility import *

__all__: list[str] = []
__all__ += barriers.__all__
__all__ += clc.__all__
__all__ += cluster.__all__
__all__ += copies.__all__
__all__ += layouts.__all__
__all__ += memory.__all__
__all__ += mma.__all__
__all__ += packed.__all__
__all__ += ranks.__all__
__all__ += tasks.__all__
__all__ += types.__all__
__all__ += utility.__all__


def __getattr__(name: str) -> Any:
    """Look up what `mxfp8_utils` defines, and names for AMD GPUs: a kernel that uses one of these gets an error."""
    if name == "_to_mxfp8_block":
        return import_module("tlx_xdsl.language.extra.mxfp8_utils")._to_mxfp8_block
    found = amd_only(name)
    if found is None:
        raise AttributeError(f"module 'tlx_xdsl.language.tlx' has no attribute '{name}'")
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
