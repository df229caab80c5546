"""The host side of a tensor descriptor: which tensor in device memory a kernel's TMA copies address.

`TensorDescriptor` has the fields of `triton.tools.tensor_descriptor.TensorDescriptor` and is used the same
way, without needing Triton or torch. Whatever takes one takes the other: only the attributes are looked at.

A tensor is anything that answers like torch's: `data_ptr()`, `stride()`, `element_size()`, `shape`, `dtype`.
Numpy arrays are understood as well, for kernels that run in the interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.element_types import SPELLINGS
from tlx_xdsl.errors import InputError

MAX_RANK = 5
"""Dimensions that a TMA tensor map can describe."""

MAX_BLOCK_ELEMENTS = 1 << 20
"""Elements of the largest block Triton accepts as a tensor."""

_ALIGNMENT = 16
"""Bytes: cuTensorMapEncodeTiled wants the base address and every outer stride in multiples of it."""

_MAX_EXTENT = (1 << 31) - 1
"""Kernels receive the extents as i32."""

_MAX_STRIDE_BYTES = (1 << 40) - 1
"""cuTensorMapEncodeTiled wants strides below 2**40 bytes."""

SYMBOLIC_TENSORS = ("FakeTensor", "FunctionalTensor")
"""Classes of torch.compile's stand-ins for tensors, which have no address yet."""


def dtype_name(dtype: object) -> str | None:
    """Return the element type in Triton's short spelling: `torch.float16` and `"float16"` give `fp16`.

    One-bit integers are `i1`, whichever signedness a Triton version writes. None for a type not known here.
    """
    return SPELLINGS.get(str(dtype).rsplit(".", 1)[-1])


def element_size(tensor: Any) -> int:
    """Return the size of one element of `tensor`, in bytes."""
    if hasattr(tensor, "element_size"):
        return int(tensor.element_size())
    return int(tensor.dtype.itemsize)


@dataclass
class TensorDescriptor:
    """A tensor in device memory and the block of it that one TMA copy moves.

    base:         the tensor, or anything with `data_ptr()`, `dtype` and an element size; where it starts.
    shape:        extents in elements, outermost first; 1 to 5 of them.
    strides:      distances in elements, one per dimension; the last is 1.
    block_shape:  elements per copy in each dimension, powers of two. May exceed the 256 elements of one TMA
                  box: the compiler then splits the copy.
    padding:      what reads outside the tensor give: "zero", or "nan" for floating-point tensors.
    round_f32_to_tf32:  loads round float32 elements to TF32.

    Raises ValueError when the fields do not describe something the TMA unit can address. The fields are
    checked once: an autotuner may replace `block_shape` later, and the launcher compares it with what the
    kernel was compiled for.
    """

    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        _check_rank(self.shape, self.strides, self.block_shape)
        _check_shape(self.shape)
        _check_block_shape(self.block_shape)
        _check_strides(self.strides, element_size(self.base))
        _check_base(self.base)
        self._check_options()

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """Describe all of `tensor`, in its own shape and strides.

        Raises ValueError as the class does, so also for a tensor whose last dimension is not contiguous.
        """
        if callable(getattr(tensor, "stride", None)):
            strides = list(tensor.stride())
        else:  # numpy counts strides in bytes
            strides = [stride // element_size(tensor) for stride in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), strides, list(block_shape), padding, round_f32_to_tf32)

    def _check_options(self) -> None:
        if self.padding not in ("zero", "nan"):
            raise InputError(f"padding: expected 'zero' or 'nan', got {self.padding!r}")
        name = dtype_name(self.base.dtype)
        if self.padding == "nan" and name is not None and not name.startswith(("fp", "bf")):
            raise InputError(f"padding 'nan': expected a floating-point tensor, got {self.base.dtype}")
        if self.round_f32_to_tf32 and name != "fp32":
            raise InputError(f"round_f32_to_tf32: expected a float32 tensor, got {self.base.dtype}")


def _check_rank(shape: Sequence[int], strides: Sequence[int], block_shape: Sequence[int]) -> None:
    rank = len(shape)
    if not 1 <= rank <= MAX_RANK:
        raise InputError(f"shape: expected 1 to {MAX_RANK} dimensions, got {rank}: {list(shape)}")
    for name, value in (("strides", strides), ("block_shape", block_shape)):
        if len(value) != rank:
            raise InputError(
                f"{name}: expected {rank} entries like shape {list(shape)}, got {len(value)}: {list(value)}"
            )


def _check_shape(shape: Sequence[int]) -> None:
    for dim, extent in enumerate(shape):
        if not 0 < extent <= _MAX_EXTENT:
            raise InputError(f"shape[{dim}]: expected 1 to {_MAX_EXTENT} elements, got {extent}")


def _check_block_shape(block_shape: Sequence[int]) -> None:
    for dim, extent in enumerate(block_shape):
        if extent <= 0 or extent & (extent - 1):
            raise InputError(f"block_shape[{dim}]: expected a power of two, got {extent}")
    elements = math.prod(block_shape)
    if elements > MAX_BLOCK_ELEMENTS:
        raise InputError(
            f"block_shape: expected at most {MAX_BLOCK_ELEMENTS} elements, got {elements} in {list(block_shape)}"
        )


def _check_strides(strides: Sequence[int], element_bytes: int) -> None:
    if strides[-1] != 1:
        raise InputError(
            f"strides: expected a contiguous last dimension (stride 1), got {list(strides)}; "
            "describe a transposed tensor through its contiguous view and swap the offsets in the kernel"
        )
    for dim, stride in enumerate(strides[:-1]):
        stride_bytes = stride * element_bytes
        if stride_bytes % _ALIGNMENT or not 0 <= stride_bytes <= _MAX_STRIDE_BYTES:
            raise InputError(
                f"strides[{dim}]: expected a multiple of {_ALIGNMENT} bytes below 2**40, "
                f"got {stride} elements of {element_bytes} bytes"
            )


def _check_base(base: Any) -> None:
    # A numpy array has no `data_ptr`: it lives in the interpreter, where nothing asks for alignment.
    if type(base).__name__ in SYMBOLIC_TENSORS or not hasattr(base, "data_ptr"):
        return
    address = base.data_ptr()
    if address % _ALIGNMENT:
        raise InputError(
            f"base: expected a {_ALIGNMENT}-byte aligned address, got {address:#x} "
            f"({address % _ALIGNMENT} bytes past one)"
        )
