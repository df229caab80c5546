"""Types made of element types: pointers and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from .dtypes import base_type, dtype, int32

__all__ = ["TRITON_MAX_TENSOR_NUMEL", "block_type", "const", "pi32_t", "pointer_type"]

TRITON_MAX_TENSOR_NUMEL = 1048576
"""Elements that a block may have at most."""


@dataclass(frozen=True, repr=False)
class pointer_type(base_type):
    """A pointer to elements of `element_ty`; `const` says that they are not written through it."""

    element_ty: dtype
    address_space: str = "global"
    const: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        """Check the element type. Raises TypeError for what is no type."""
        if not isinstance(self.element_ty, base_type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a pointer points to elements of a type, found {self.element_ty!r}")

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Triton's name, such as `pointer<fp16>`."""
        return f"{'const_' if self.const else ''}pointer<{self.element_ty}>"

    @property
    def scalar(self) -> pointer_type:
        """The element type: this type."""
        return self

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of an address."""
        return 64

    def is_ptr(self) -> bool:
        """Yes."""
        return True

    def is_const(self) -> bool:
        """Say whether memory is not written through the pointer."""
        return self.const

    def is_floating(self) -> bool:
        """No."""
        return False

    def is_int(self) -> bool:
        """No."""
        return False

    def __repr__(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True, repr=False)
class block_type(base_type):
    """A block of `shape` elements of type `element_ty`; the sizes are powers of two.

    Raises TypeError for an empty shape and ValueError for sizes that no block may have.
    """

    element_ty: dtype | pointer_type
    shape: tuple[int, ...]

    def __init__(self, element_ty: dtype | pointer_type, shape: Sequence[int]):
        sizes = tuple(int(size) for size in shape)
        if not sizes:
            raise TypeError("a block has at least one dimension, found the shape ()")
        if any(size < 1 or size & (size - 1) for size in sizes) or prod(sizes) > TRITON_MAX_TENSOR_NUMEL:
            raise ValueError(
                f"the sizes of a block are powers of two, {TRITON_MAX_TENSOR_NUMEL} elements at most, "
                f"found {list(sizes)}"
            )
        object.__setattr__(self, "element_ty", element_ty)
        object.__setattr__(self, "shape", sizes)

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The shape and the element type."""
        return f"<{list(self.shape)}, {self.element_ty}>"

    @property
    def numel(self) -> int:
        """Elements of the block."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return self.numel * self.element_ty.primitive_bitwidth // 8

    @property
    def scalar(self) -> dtype | pointer_type:
        """The element type."""
        return self.element_ty

    def with_element_ty(self, scalar_ty: dtype | pointer_type) -> block_type:
        """The type of the same shape with other elements."""
        return block_type(scalar_ty, self.shape)

    def get_block_shapes(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def is_block(self) -> bool:
        """Yes."""
        return True

    def __repr__(self) -> str:
        """Return the name."""
        return self.name


pi32_t = pointer_type(int32)


class const:
    """Annotation of a pointer to memory that the kernel doesn't write."""
