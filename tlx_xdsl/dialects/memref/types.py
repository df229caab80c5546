"""Types of memory: shapes, strides and offsets, which may be known only when it runs."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    StridedLayoutAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    base,
)
from xdsl.utils.exceptions import VerifyException

ANY_MEMREF = base(MemRefType) | base(UnrankedMemRefType)
"""Memory of a known rank, or of an unknown one (`memref<*xf32>`)."""


def is_memref(type_: Attribute) -> bool:
    """True if values of this type are memory, of any rank."""
    return isinstance(type_, MemRefType | UnrankedMemRefType)


def ranked(type_: Attribute) -> MemRefType[Attribute]:
    """`type_` as memory of a known rank.

    Raises VerifyException for any other type.
    """
    if not isinstance(type_, MemRefType):
        raise VerifyException(f"expected a ranked memref, found {type_}")
    return cast(MemRefType[Attribute], type_)


def strides_of(type_: Attribute) -> tuple[tuple[int | None, ...], int | None]:
    """Elements from one index to the next along each dimension, and before the first element; None: known when it runs.

    Raises VerifyException for memory of an unknown rank, or with a layout that no strides describe.
    """
    memory = ranked(type_)
    if isinstance(memory.layout, StridedLayoutAttr):
        return tuple(memory.layout.get_strides()), memory.layout.get_offset()
    strides = memory.get_strides()
    if strides is None:
        raise VerifyException(f"no strides describe the layout of {type_}")
    return tuple(strides), memory.get_offset()


def fits(found: int | None, wanted: int | None) -> bool:
    """True if a number of a type stands for a value: `?` stands for any, a number for itself alone."""
    return found is None or found == wanted


def compatible(first: int | None, second: int | None) -> bool:
    """True if two numbers of types may be of one memory."""
    return first is None or second is None or first == second


def numbers_of(attr: DenseArrayBase[IntegerType]) -> list[int | None]:
    """The numbers of a list, None for those that are operands."""
    return [None if value == DYNAMIC_INDEX else value for value in attr.get_values()]


def sizes_of(type_: Attribute) -> list[int | None]:
    """The sizes of memory of a known rank, None for those that are known when it runs."""
    return [None if size == DYNAMIC_INDEX else size for size in ranked(type_).get_shape()]


def element_of(type_: Attribute) -> Attribute:
    """The type of the elements of memory of any rank."""
    return cast("MemRefType[Attribute] | UnrankedMemRefType[Attribute]", type_).element_type
