"""Functions that touch global memory, and hints about addresses.

A *pointer* argument is a scalar pointer or a block of pointers; values and masks are broadcast to its shape. Masks are
int1; where a mask is false, memory is not touched. `cache_modifier` and `eviction_policy` are those of PTX's `ld` and
`st` (PTX ISA 9.7.9): "", ".ca", ".cg", ".cv", ".wb", ".cs", ".wt"; "", "evict_first", "evict_last".
"""

from __future__ import annotations

from typing import Any

from .arguments import Axes, Flag, Shape, Text, Value, Values
from .marks import builtin, must_use_result
from .objects import tensor, tensor_descriptor, tensor_descriptor_base

__all__ = [
    "advance",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_poll",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
    "expect_zero",
    "load",
    "load_tensor_descriptor",
    "make_block_ptr",
    "make_tensor_descriptor",
    "max_constancy",
    "max_contiguous",
    "multiple_of",
    "store",
    "store_tensor_descriptor",
]

_tl = builtin("tl")
_member = builtin("tl", member=True)


@_tl
def load(
    pointer: tensor,
    mask: Value | None = None,
    other: Value | None = None,
    *,
    cache_modifier: Text = "",
    eviction_policy: Text = "",
    volatile: Flag = False,
    boundary_check: Axes = (),
    padding_option: Text = "",
) -> tensor:
    """Read through a pointer; where `mask` is false the result is `other`, or without it 0 on GPUs and CPUs.

    Through a block pointer: the dimensions `boundary_check` are checked, and what is outside of the tensor along them
    reads as `padding_option` says: "zero", "nan", or anything.
    """
    ...


@_member
def store(
    pointer: tensor,
    value: Value,
    mask: Value | None = None,
    *,
    cache_modifier: Text = "",
    eviction_policy: Text = "",
    boundary_check: Axes = (),
) -> None:
    """Write `value`, converted to the pointer's element type, through a pointer.

    Through a block pointer, what is outside of the tensor along the dimensions `boundary_check` is not written.
    """


@_tl
def make_block_ptr(
    base: tensor, shape: Values, strides: Values, offsets: Values, block_shape: Shape, order: Shape
) -> tensor:
    """A block of the tensor at `base`, as a pointer that `advance` moves, and that `load` and `store` take.

    `shape`, `strides` and `offsets` are in elements; `order` names the dimensions, fastest first. Triton has this up to
    3.8; newer kernels use tensor descriptors.
    """
    ...


@must_use_result("tl.advance has no side effect: assign what it returns to a name.")
@_member
def advance(base: tensor, offsets: Values) -> tensor:
    """The block pointer `base`, moved by `offsets` elements."""
    ...


@_tl
def make_tensor_descriptor(
    base: tensor, shape: Values, strides: Values, block_shape: Shape, padding_option: Text = "zero"
) -> tensor_descriptor:
    """A TMA descriptor of the tensor at `base`, for blocks of `block_shape` elements.

    `strides` are in elements; the last is 1, the others are multiples of 16 bytes. Elements outside of the tensor
    read as zero, or as NaN with the padding option "nan".
    """
    ...


@_tl
def load_tensor_descriptor(desc: tensor_descriptor_base, offsets: Values) -> tensor:
    """The block of a described tensor at `offsets` elements."""
    ...


@_tl
def store_tensor_descriptor(desc: tensor_descriptor_base, offsets: Values, value: tensor) -> None:
    """Write a block into a described tensor at `offsets` elements."""


# Atomic operations: `sem` is "relaxed", "acquire", "release" or "acq_rel" (the default), `scope` is "gpu" (the
# default), "cta" or "sys". Each returns what was in memory before. All take integers of 32 and 64 bits; what else they
# take, if anything, they say.


@_member
def atomic_add(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Add `val` to memory atomically; return the old value. Also for fp16, bf16, fp32 and fp64."""
    ...


@_member
def atomic_and(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Do a bitwise "and" with `val` in memory atomically; return the old value."""
    ...


@_member
def atomic_or(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Do a bitwise "or" with `val` in memory atomically; return the old value."""
    ...


@_member
def atomic_xor(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Do a bitwise "exclusive or" with `val` in memory atomically; return the old value."""
    ...


@_member
def atomic_max(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Leave the larger of memory and `val` in memory atomically; return the old value. Also for fp32 and fp64."""
    ...


@_member
def atomic_min(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Leave the smaller of memory and `val` in memory atomically; return the old value. Also for fp32 and fp64."""
    ...


@_member
def atomic_xchg(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Put `val` into memory atomically; return the old value. Also for fp32 and fp64."""
    ...


@_member
def atomic_cas(pointer: tensor, cmp: Value, val: Value, sem: Text | None = None, scope: Text | None = None) -> tensor:
    """Put `val` into memory where it equals `cmp`, atomically; return the old value. Also for 16 bits and floats."""
    ...


@_member
def atomic_load(
    pointer: tensor, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> tensor:
    """Read memory atomically. `sem` is "acquire" (the default) or "relaxed"; elements are of any type."""
    ...


@_member
def atomic_store(
    pointer: tensor, val: Value, mask: Value | None = None, sem: Text | None = None, scope: Text | None = None
) -> None:
    """Write memory atomically. `sem` is "release" (the default) or "relaxed"; elements are of any type."""


@_member
def atomic_poll(
    pointer: tensor, expected_value: Any, sem: Any = None, scope: Any = None, timeout_ns: Any = None
) -> tensor:
    """Read memory until it equals `expected_value`, for `timeout_ns` nanoseconds at most; whether it did, an int1.

    `sem` is "acquire" (the default) or "relaxed"; elements are integers of 16, 32 or 64 bits.
    """
    ...


# Hints: what the compiler may take for granted. Each returns its argument.


@_tl
def multiple_of(input: tensor, values: Axes) -> tensor:
    """Promise that along each dimension, runs of contiguous values start at multiples of `values`."""
    ...


@_tl
def max_contiguous(input: tensor, values: Axes) -> tensor:
    """Promise that along each dimension, `values` neighbours at a time are contiguous."""
    ...


@_tl
def max_constancy(input: tensor, values: Axes) -> tensor:
    """Promise that along each dimension, `values` neighbours at a time are equal."""
    ...


@_tl
def assume(cond: Value) -> None:
    """Promise that `cond`, a scalar, holds."""


@_tl
def expect_zero(x: tensor, mask: Value) -> tensor:
    """`x`, of which it is expected that it is zero where `mask` is true; code for debugging checks that."""
    ...
