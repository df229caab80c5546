"""Functions that touch global memory, and hints about addresses.

A *pointer* argument is a scalar pointer or a block of pointers; values and masks are broadcast to its shape. Masks are
int1; where a mask is false, memory is not touched. `cache_modifier` and `eviction_policy` are those of PTX's `ld` and
`st` (PTX ISA 9.7.9): "", ".ca", ".cg", ".cv", ".wb", ".cs", ".wt"; "", "evict_first", "evict_last".
"""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.marks import builtin, must_use_result

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
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    *,
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    boundary_check: Any = (),
    padding_option: Any = "",
) -> Any:
    """Read through a pointer; where `mask` is false the result is `other`, or undefined without it.

    Through a block pointer: the dimensions `boundary_check` are checked, and what is outside of the tensor along them
    reads as `padding_option` says: "zero", "nan", or anything.
    """


@_member
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    *,
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    boundary_check: Any = (),
) -> Any:
    """Write `value`, converted to the pointer's element type, through a pointer.

    Through a block pointer, what is outside of the tensor along the dimensions `boundary_check` is not written.
    """


@_tl
def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
    """A block of the tensor at `base`, as a pointer that `advance` moves, and that `load` and `store` take.

    `shape`, `strides` and `offsets` are in elements; `order` names the dimensions, fastest first. Triton has this up to
    3.8; newer kernels use tensor descriptors.
    """


@must_use_result("tl.advance has no side effect: assign what it returns to a name.")
@_member
def advance(base: Any, offsets: Any) -> Any:
    """The block pointer `base`, moved by `offsets` elements."""


@_tl
def make_tensor_descriptor(base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero") -> Any:
    """A TMA descriptor of the tensor at `base`, for blocks of `block_shape` elements.

    `strides` are in elements; the last is 1, the others are multiples of 16 bytes. Elements outside of the tensor
    read as zero, or as NaN with the padding option "nan".
    """


@_tl
def load_tensor_descriptor(desc: Any, offsets: Any) -> Any:
    """The block of a described tensor at `offsets` elements."""


@_tl
def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> Any:
    """Write a block into a described tensor at `offsets` elements."""


# Atomic operations: `sem` is "relaxed", "acquire", "release" or "acq_rel" (the default), `scope` is "gpu" (the
# default), "cta" or "sys". Each returns what was in memory before. All take integers of 32 and 64 bits; what else they
# take, if anything, they say.


@_member
def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Add `val` to memory atomically; return the old value. Also for fp16, bf16, fp32 and fp64."""


@_member
def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Do a bitwise "and" with `val` in memory atomically; return the old value."""


@_member
def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Do a bitwise "or" with `val` in memory atomically; return the old value."""


@_member
def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Do a bitwise "exclusive or" with `val` in memory atomically; return the old value."""


@_member
def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Leave the larger of memory and `val` in memory atomically; return the old value. Also for fp32 and fp64."""


@_member
def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Leave the smaller of memory and `val` in memory atomically; return the old value. Also for fp32 and fp64."""


@_member
def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Put `val` into memory atomically; return the old value. Also for fp32 and fp64."""


@_member
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Any:
    """Put `val` into memory where it equals `cmp`, atomically; return the old value. Also for 16 bits and floats."""


@_member
def atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Read memory atomically. `sem` is "acquire" (the default) or "relaxed"; elements are of any type."""


@_member
def atomic_store(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Write memory atomically. `sem` is "release" (the default) or "relaxed"; elements are of any type."""


@_member
def atomic_poll(pointer: Any, expected_value: Any, sem: Any = None, scope: Any = None, timeout_ns: Any = None) -> Any:
    """Read memory until it equals `expected_value`, for `timeout_ns` nanoseconds at most; whether it did, an int1.

    `sem` is "acquire" (the default) or "relaxed"; elements are integers of 16, 32 or 64 bits.
    """


# Hints: what the compiler may take for granted. Each returns its argument.


@_tl
def multiple_of(input: Any, values: Any) -> Any:
    """Promise that along each dimension, runs of contiguous values start at multiples of `values`."""


@_tl
def max_contiguous(input: Any, values: Any) -> Any:
    """Promise that along each dimension, `values` neighbours at a time are contiguous."""


@_tl
def max_constancy(input: Any, values: Any) -> Any:
    """Promise that along each dimension, `values` neighbours at a time are equal."""


@_tl
def assume(cond: Any) -> Any:
    """Promise that `cond`, a scalar, holds."""


@_tl
def expect_zero(x: Any, mask: Any) -> Any:
    """`x`, of which it is expected that it is zero where `mask` is true; code for debugging checks that."""
