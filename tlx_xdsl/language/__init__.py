"""The `tl` language of kernels: `import tlx_xdsl.language as tl`.

Names and meaning are those of `triton.language`. Each name is documented in the module of its topic. In signatures,
arguments are what kernels pass: scalars, blocks and compile-time numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import (
    compile_time,
    composite_types,
    core as core,
    creation,
    debug,
    dtypes,
    extra,
    math,
    matrix,
    memory,
    objects,
    random,
    reduction,
    shape,
    standard,
    target_info,
)
from .compile_time import constexpr_type as constexpr_type
from .composite_types import *
from .core import *
from .creation import *
from .debug import *
from .dtypes import *
from .marks import MEMBERS as MEMBERS
from .math import *
from .matrix import *
from .memory import *
from .objects import *
from .random import *
from .reduction import *
from .shape import *
from .standard import *

if TYPE_CHECKING:
    from .annotations import (  # pyright: ignore[reportMissingModuleSource]
        constexpr as constexpr,
    )
else:
    from .compile_time import constexpr as constexpr

__all__ = ["extra", "math", "target_info"]
__all__ += compile_time.__all__
__all__ += composite_types.__all__
__all__ += core.__all__
__all__ += creation.__all__
__all__ += debug.__all__
__all__ += dtypes.__all__
__all__ += math.__all__
__all__ += matrix.__all__
__all__ += memory.__all__
__all__ += objects.__all__
__all__ += random.__all__
__all__ += reduction.__all__
__all__ += shape.__all__
__all__ += standard.__all__

core.OTHERS.update({name: globals()[name] for name in __all__})
for _name, _function in MEMBERS.items():
    setattr(tensor, _name, _function)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
