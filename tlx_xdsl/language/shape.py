"""Functions that rearrange the elements of blocks. Dimensions count from 0; sizes are in elements."""

from __future__ import annotations

from .arguments import Axes, Flag, Int, Value
from .marks import builtin
from .objects import tensor

__all__ = [
    "broadcast",
    "broadcast_to",
    "expand_dims",
    "interleave",
    "join",
    "permute",
    "ravel",
    "reshape",
    "split",
    "squeeze",
    "trans",
    "unsqueeze",
    "view",
]

_tl = builtin("tl")
_member = builtin("tl", member=True)


@_tl
def broadcast(input: Value, other: Value) -> tuple[tensor, tensor]:
    """Both values, repeated to their common shape: a tuple."""
    ...


@_member
def broadcast_to(input: Value, *shape: Axes) -> tensor:
    """`input`, repeated to `shape`: a tuple, or one argument per size."""
    ...


@_member
def expand_dims(input: Value, axis: Axes) -> tensor:
    """`input` with a dimension of size 1 at `axis`, or several; a negative axis counts from the end."""
    ...


@_member
def trans(input: tensor, *dims: Axes) -> tensor:
    """`input` with its dimensions in the order `dims`; without them, the last two are swapped."""
    ...


@_member
def permute(input: tensor, *dims: Axes) -> tensor:
    """`input` with its dimensions in the order `dims`."""
    ...


@_member
def reshape(input: Value, *shape: Axes, can_reorder: Flag = False) -> tensor:
    """The elements of `input`, in row-major order, under another shape; with `can_reorder`, in any order.

    The shape `()` makes a number of a block with one element.
    """
    ...


@_member
def view(input: Value, *shape: Axes) -> tensor:
    """The elements of `input`, in any order, under another shape; `reshape` is what you want."""
    ...


@_member
def ravel(x: tensor, can_reorder: Flag = False) -> tensor:
    """The elements of `x` in one dimension."""
    ...


@_tl
def squeeze(x: tensor, dim: Int) -> tensor:
    """`x` without the dimension `dim`, whose size is 1."""
    ...


@_tl
def unsqueeze(x: tensor, dim: Int) -> tensor:
    """`x` with a dimension of size 1 at `dim`."""
    ...


@_tl
def join(a: Value, b: Value) -> tensor:
    """Both blocks side by side in a new last dimension of size 2."""
    ...


@_member
def split(a: tensor) -> tuple[tensor, tensor]:
    """The two halves of a block along its last dimension, which has size 2: a tuple."""
    ...


@_tl
def interleave(a: tensor, b: tensor) -> tensor:
    """The elements of both blocks in turn along the last dimension: `a[0], b[0], a[1], b[1], ...`."""
    ...


@_member
def item(self: tensor) -> tensor:
    """The only element of a block, as a scalar."""
    ...
