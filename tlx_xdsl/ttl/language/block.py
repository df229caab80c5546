"""Functions of blocks in the order of arguments that tt-lang's later spelling has; `math` has all of them."""

from __future__ import annotations

from typing import Any

from .kernel import builtin

__all__ = ["broadcast", "transpose", "typecast"]

_block = builtin("ttl.block")


@_block
def broadcast(x: Any, dims: Any, shape: Any) -> Any:
    """Repeat `x` along `dims` until it has `shape`: `ttl.math.broadcast(x, shape, dims)`."""


@_block
def transpose(x: Any) -> Any:
    """Exchange rows and columns: `ttl.math.transpose(x)`."""


@_block
def typecast(x: Any, dtype: Any) -> Any:
    """Convert the elements to another type: `ttl.math.typecast(x, dtype)`."""
