"""Functions that make or rearrange blocks, as tt-lang has them since 0.17; `math` has them under their older names."""

from __future__ import annotations

from typing import Any

from .kernel import builtin

__all__ = ["broadcast", "fill", "mask", "mask_posinf", "transpose", "typecast", "where"]

_block = builtin("ttl.block")


@_block
def broadcast(x: Any, dims: Any, shape: Any = None) -> Any:
    """Repeat `x` along `dims` until it has `shape`: `ttl.math.broadcast(x, shape, dims)`.

    Without `shape`, the result has that of the block that it is combined with, or stored to.
    """


@_block
def fill(value: Any, shape: Any, layout: Any = None, dtype: Any = None, tile: Any = (32, 32)) -> Any:
    """A block of `shape`, in tiles, every element of which is the number `value`: `ttl.block.fill(0.0, (2, 2))`.

    Without `dtype`, its elements are those of the block that it is combined with, or stored to.
    """


@_block
def mask(x: Any, mask: Any) -> Any:
    """`x` where the element of `mask` is 0, and 0 elsewhere."""


@_block
def mask_posinf(x: Any, mask: Any) -> Any:
    """`x` where the element of `mask` is 0, and positive infinity elsewhere."""


@_block
def transpose(x: Any) -> Any:
    """Exchange rows and columns: `ttl.math.transpose(x)`."""


@_block
def typecast(x: Any, dtype: Any) -> Any:
    """Convert the elements to another type: `ttl.math.typecast(x, dtype)`."""


@_block
def where(condition: Any, a: Any, b: Any) -> Any:
    """The element of `a` where that of `condition` is not 0, and that of `b` elsewhere."""
