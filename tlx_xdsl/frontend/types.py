"""Conversions between the language's element types, their spelling in signatures, and IR types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base import attribute_of
from tlx_xdsl.dialects.tt import PointerType, TensorDescType
from tlx_xdsl.dialects.tt.enums import PtrAddrSpace
from tlx_xdsl.element_types import BY_NAME
from tlx_xdsl.errors import InputError
from tlx_xdsl.language.core import ALL_DTYPES, dtype, pointer_type
from tlx_xdsl.layouts.encodings import Ints


class SemanticError(Exception):
    """Values do not fit; the caller adds the location in the kernel."""


_BY_NAME = {ty.spelling: ty for ty in ALL_DTYPES}
_ALSO = {"u1": "i1"}
"""Spellings of Triton's runtime: a boolean and a tensor of booleans are `u1` and `*u1` to it."""


def ir_type(element: dtype | pointer_type, shape: Ints = ()) -> Attribute:
    """The IR type of a scalar, or of a block of `shape` elements without a layout.

    Raises SemanticError for a type that NVIDIA's GPUs do not have.
    """
    if isinstance(element, pointer_type):
        space = PtrAddrSpace.Constant if element.is_const() else PtrAddrSpace.Global
        scalar: Attribute = PointerType.get(ir_type(element.element_ty), space.value)
    elif BY_NAME[element.name].is_amd:
        raise SemanticError(_not_here(element))
    else:
        scalar = attribute_of(BY_NAME[element.name])
    return TensorType(scalar, shape) if shape else scalar


def _not_here(element: dtype) -> str:
    return f"type {element} not supported in this architecture: it is AMD's, NVIDIA's are fp8e4nv and fp8e5"


def descriptor_ir_type(element: dtype, block_shape: Ints) -> TensorDescType:
    """The IR type of a tensor descriptor. Its integers carry their sign, which nothing else in the IR does."""
    scalar = ir_type(element)
    if element.is_int() and element.primitive_bitwidth > 1:
        sign = Signedness.SIGNED if element.is_int_signed() else Signedness.UNSIGNED
        scalar = IntegerType(element.primitive_bitwidth, sign)
    return TensorDescType.get(block_shape, scalar)


@dataclass(frozen=True)
class ArgumentType:
    """The type of a kernel's argument, as a signature states it."""

    element: dtype | pointer_type
    block_shape: Ints = ()
    """Block of a tensor descriptor, in elements; empty for pointers and scalars."""
    divisibility: int = 1
    """Divisor of the address (in bytes) or of the integer."""

    @property
    def is_descriptor(self) -> bool:
        """Say whether this is a tensor descriptor."""
        return bool(self.block_shape)

    def __str__(self) -> str:
        """Return Triton's spelling, without the divisibility."""
        if self.is_descriptor:
            return f"tensordesc<{_spelling(self.element)}[{', '.join(map(str, self.block_shape))}]>"
        return _spelling(self.element)


def _spelling(element: dtype | pointer_type) -> str:
    return f"*{_spelling(element.element_ty)}" if isinstance(element, pointer_type) else element.spelling


_DESCRIPTOR = re.compile(r"tensordesc<\s*(\w+)\s*\[([\d\s,]*)\]\s*(?:,.*)?>")


def split_tuple(text: str) -> tuple[str, ...] | None:
    """The items of a tuple's type such as `(*fp16, (i32, i64))`; None for any other text.

    Raises ValueError for parentheses that do not match.
    """
    text = text.strip()
    if not text.startswith("("):
        return None
    items, depth = [""], 0
    for position, character in enumerate(text):
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(character, 0)
        if not depth and position < len(text) - 1:
            raise InputError(f"expected one tuple, found '{text}'")
        if depth == 1 and character == ",":
            items.append("")
        elif 0 < position < len(text) - 1:
            items[-1] += character
    if depth:
        raise InputError(f"the parentheses of '{text}' do not match")
    return tuple(item for item in items if item.strip())


def parse_argument_type(text: str) -> ArgumentType:
    """The type that a signature spells `*fp16`, `*fp16:16`, `i32`, `tensordesc<fp16[128, 64]>`.

    Raises ValueError, with what was expected, for any other text.
    """
    spelled, _, suffix = text.strip().partition(":")
    divisibility = 1
    if suffix:
        if not suffix.isdigit() or not int(suffix):
            raise InputError(f"expected a divisibility such as ':16' after the type, found ':{suffix}'")
        divisibility = int(suffix)
    if (match := _DESCRIPTOR.fullmatch(spelled)) is not None:
        block = tuple(int(size) for size in match[2].split(",") if size.strip())
        if not 1 <= len(block) <= 5 or any(size < 1 or size & (size - 1) for size in block):
            raise InputError(f"expected a descriptor block of 1 to 5 powers of two, found '{spelled}'")
        if prod(block) == 1:
            raise InputError(f"a descriptor block needs more than one element, found '{spelled}'")
        return ArgumentType(_element(match[1], text), block)
    if spelled.startswith("*"):
        # `*k` is a pointer to memory that the kernel does not write.
        is_const = spelled.startswith("*k")
        pointee = _element(spelled[2:] if is_const else spelled[1:], text)
        return ArgumentType(pointer_type(pointee, const=is_const), (), divisibility)
    return ArgumentType(_element(spelled, text), (), divisibility)


def _element(name: str, text: str) -> dtype:
    name = _ALSO.get(name, name)
    if name not in _BY_NAME:
        raise InputError(
            f"unknown type '{text}': expected a pointer such as '*fp16', one of {', '.join(_BY_NAME)}, "
            "or a descriptor such as 'tensordesc<fp16[128, 64]>'"
        )
    found = _BY_NAME[name]
    if BY_NAME[found.name].is_amd:
        raise InputError(_not_here(found))
    return found
