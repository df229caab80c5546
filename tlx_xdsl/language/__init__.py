"""The `tl` language of kernels: `import tlx_xdsl.language as tl`.

Names and meaning are those of `triton.language`. Each name is documented in the module of its topic. In signatures,
arguments are what kernels pass: scalars, blocks and compile-time numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlx_xdsl.language import (
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
from tlx_xdsl.language.compile_time import constexpr_type as constexpr_type
from tlx_xdsl.language.composite_types import *
from tlx_xdsl.language.core import *
from tlx_xdsl.language.creation import *
from tlx_xdsl.language.debug import *
from tlx_xdsl.language.dtypes import *
from tlx_xdsl.language.marks import MEMBERS as MEMBERS
from tlx_xdsl.language.math import *
from tlx_xdsl.language.matrix import *
from tlx_xdsl.language.memory import *
from tlx_xdsl.language.objects import *
from tlx_xdsl.language.random import *
from tlx_xdsl.language.reduction import *
from tlx_xdsl.language.shape import *
from tlx_xdsl.language.standard import *

if TYPE_CHECKING:
    from tlx_xdsl.language.annotations import (  # pyright: ignore[reportMissingModuleSource]
        constexpr as constexpr,
    )
else:
    from tlx_xdsl.language.compile_time import constexpr as constexpr

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
