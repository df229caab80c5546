"""CUDA's libdevice: mathematical functions beyond `tl.math`, and the fine print of rounding.

Arguments are scalars or blocks of exactly the types that `libdevice_table` lists; they are broadcast. The functions
are made from that table: `arg0`, `arg1`, ... are their parameters.
"""

from __future__ import annotations

import inspect
from typing import Any

from ..marks import builtin
from .libdevice_table import FUNCTIONS, Function

__all__ = list(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]


def _declared(function: Function) -> Any:
    def declaration(*args: Any) -> Any: ...

    declaration.__name__ = declaration.__qualname__ = function.name
    declaration.__doc__ = function.meaning
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"arg{index}", kind) for index in range(function.arity)]
    setattr(declaration, "__signature__", inspect.Signature(parameters))  # noqa: B010
    return builtin("tl.extra.libdevice")(declaration)


globals().update({name: _declared(function) for name, function in FUNCTIONS.items()})
