"""Element types, numbers and layouts as the language writes them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float32Type, FloatAttr, IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects.base.tensors import as_tensor, element_type_of
from tlx_xdsl.dialects.tt.enums import PtrAddrSpace
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType
from tlx_xdsl.element_types import ElementType
from tlx_xdsl.layouts.encodings import (
    Layout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
)
from tlx_xdsl.layouts.shared import default_nvmma_layout, default_shared_layout

# Python expressions as text, with as few parentheses as their meaning allows.

# Python's precedences ("Operator precedence" in its reference), the higher the tighter.
COMPARISON, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(9)
PRECEDENCE = {
    "|": OR, "^": XOR, "&": AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "//": PRODUCT, "%": PRODUCT, "==": COMPARISON, "!=": COMPARISON, "<": COMPARISON, "<=": COMPARISON,
    ">": COMPARISON, ">=": COMPARISON,
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """An expression."""

    text: str
    precedence: int = ATOM
    parts: tuple[str, str, str] | None = None
    """Left side, operator and right side, where Python has an assignment with that operator."""

    def __str__(self) -> str:
        """Return the expression."""
        return self.text

    def within(self, precedence: int) -> str:
        """The expression as an operand of something that binds with `precedence`."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def binary(symbol: str, lhs: Text, rhs: Text) -> Text:
    """`lhs symbol rhs`; operators of one precedence group to the left, and comparisons do not chain."""
    precedence = PRECEDENCE[symbol]
    left = lhs.within(precedence + (precedence == COMPARISON))
    parts = None if precedence == COMPARISON else (left, symbol, rhs.text)
    return Text(f"{left} {symbol} {rhs.within(precedence + 1)}", precedence, parts)


def unary(symbol: str, value: Text) -> Text:
    """`-value` and the like."""
    return Text(f"{symbol}{value.within(UNARY)}", UNARY)


def call(function: str, *arguments: object, **named: object) -> Text:
    """`function(arguments, name=value)`, without what is None."""
    parts = [str(argument) for argument in arguments if argument is not None]
    parts += [f"{name}={value}" for name, value in named.items() if value is not None]
    return Text(f"{function}({', '.join(parts)})")


def method(value: Text, name: str, *arguments: object, **named: object) -> Text:
    """`value.name(arguments)`."""
    return call(f"{value.within(ATOM)}.{name}", *arguments, **named)


def listed(values: Iterable[Text | str]) -> str:
    """`[a, b]`."""
    return f"[{', '.join(map(str, values))}]"


def tupled(values: Iterable[object]) -> str:
    """`(a, b)`, and `(a,)` for one."""
    texts = list(map(str, values))
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


class NotExpressible(Exception):
    """The language can't express something."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a block; of a scalar ()."""
    tensor = as_tensor(value.type)
    return () if tensor is None else tensor.get_shape()


def element_of(type_: Attribute) -> Attribute:
    """The type of the elements; of a scalar its own."""
    tensor = as_tensor(type_)
    return type_ if tensor is None else tensor.element_type


def bits_of_integer(type_: Attribute) -> int | None:
    """Bits of an integer type; None for any other type."""
    return cast(int, type_.width.data) if isinstance(type_, IntegerType) else None  # pyright: ignore


def _is_unsigned(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.UNSIGNED  # pyright: ignore


def _of_kernels(element: Attribute) -> ElementType | None:
    """A type that values in a kernel can have; None for any other."""
    found = element_type_of(element)
    return None if found is None or found.name is None or found.is_amd else found


def dtype(type_: Attribute, *, unsigned: bool = False) -> str:
    """An element type in the language. The IR's integers have no sign: they are signed here by default.

    Raises NotExpressible for a type that no value in a kernel has.
    """
    element = element_of(type_)
    if isinstance(element, PointerType):
        const = ", const=True" if element.address_space.data == PtrAddrSpace.Constant.value else ""
        return f"tl.pointer_type({dtype(element.pointee, unsigned=unsigned)}{const})"
    if (width := bits_of_integer(element)) is not None:
        unsigned = (unsigned or _is_unsigned(element)) and width > 1
        return f"tl.{'u' if unsigned else ''}int{width}"
    if (found := _of_kernels(element)) is not None:
        return f"tl.{found.exported}"
    raise NotExpressible(f"the type {element}")


def signature(type_: Attribute, divisibility: int = 1) -> str:
    """The type of an argument as a signature spells it.

    Raises NotExpressible for a type that no argument has.
    """
    suffix = f":{divisibility}" if divisibility > 1 else ""
    if isinstance(type_, TensorDescType):
        return f"tensordesc<{signature(type_.element_type)}[{', '.join(map(str, type_.shape))}]>"
    if isinstance(type_, PointerType):
        const = "k" if type_.address_space.data == PtrAddrSpace.Constant.value else ""
        return f"*{const}{signature(type_.pointee)}{suffix}"
    if (width := bits_of_integer(type_)) is not None:
        return f"{'u' if _is_unsigned(type_) else 'i'}{width}{suffix}"
    if (found := _of_kernels(type_)) is not None:
        return found.spelling
    raise NotExpressible(f"an argument of type {type_}")


TRANSPARENT = {"ttg.convert_layout", "tlx.require_layout", "tlx.release_layout"}
"""Operations that change nothing but a layout: kernels leave the choice to the compiler."""


def unwrapped(value: SSAValue) -> SSAValue:
    """The value before all changes of its layout."""
    while isinstance(value.owner, Operation) and value.owner.name in TRANSPARENT:
        value = value.owner.operands[0]
    return value


# --- numbers ---------------------------------------------------------------------------------------------------------


def number_of(value: SSAValue) -> int | float | bool | None:
    """The number that a constant holds, everywhere when it is a block; None for what is no such constant."""
    op = unwrapped(value).owner
    if not isinstance(op, ConstantOp):
        return None
    match op.value:
        case IntegerAttr():
            return _integer(op.value.value.data, op.value.type)
        case FloatAttr():
            return op.value.value.data
        case DenseIntOrFPElementsAttr():
            if not op.value.is_splat():
                return None
            number: Any = op.value.get_values()[0]
            return number if isinstance(number, float) else _integer(int(number), op.value.get_element_type())
        case _:
            return None


def _integer(number: int, type_: Attribute) -> int | bool:
    """The number as the signed integer with these bits; of one bit it is a truth value."""
    width = bits_of_integer(type_) or 64
    if width == 1:
        return bool(number)
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


def literal(number: int | float | bool, type_: Attribute | None = None) -> Text:
    """A number as Python writes it, with no more digits than elements of the type `type_` tell apart."""
    if isinstance(number, float) and isinstance(type_, Float32Type):
        number = _shortest(number)
    if isinstance(number, float) and not math.isfinite(number):
        return Text(f'float("{number}")')
    text = repr(number)
    return Text(text, UNARY) if text.startswith("-") else Text(text)


def _shortest(number: float) -> float:
    """The number with the fewest digits that float32 rounds to this one."""
    if not survives_float32(number):
        return number
    rounded = (float(f"{number:.{digits}g}") for digits in range(1, 10))
    return next((each for each in rounded if _as_float32(each) == number), number)


def _as_float32(number: float) -> float | None:
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return None


def is_natural(number: int | float | bool, type_: Attribute) -> bool:
    """Say whether a kernel gives the number this type where nothing else decides: int32, float32, int1."""
    if isinstance(number, bool):
        return type_ == IntegerType(1)
    if isinstance(number, int):
        return type_ == IntegerType(32)
    return isinstance(type_, Float32Type) and survives_float32(number)


def survives_float32(number: int | float) -> bool:
    """Say whether float32 holds the number exactly, and not as a denormal."""
    if isinstance(number, int) or not number or not math.isfinite(number):
        return True
    return _as_float32(number) == number and abs(number) >= 2.0**-126


def full(shape: tuple[int, ...], number: int | float | bool, type_: Attribute) -> Text:
    """A constant of this type."""
    if shape and not number and math.copysign(1, number) == 1:
        return call("tl.zeros", tupled(shape), dtype(type_))
    return call("tl.full", tupled(shape), literal(number, type_), dtype(type_))


# --- layouts of buffers ----------------------------------------------------------------------------------------------


def buffer_layout(layout: Layout | None, shape: tuple[int, ...], bits: int, element: Attribute) -> str | None:
    """The argument `layout` of a buffer of `shape`; None for the layout that it has without.

    Raises NotExpressible for a layout that can't be asked for.
    """
    if layout is None or _is_default(layout, shape, bits):
        return None
    match layout:
        case SwizzledSharedLayout(vec, per_phase, max_phase, order, ()):
            numbers = f"{vec}, {per_phase}, {max_phase}, {tupled(order)}"
            return f"tlx.swizzled_shared_layout_encoding({numbers})"
        case SharedLinearLayout():
            bases = f"{list(map(list, layout.offset))}, {list(map(list, layout.block))}"
            return f"tlx.shared_linear_layout_encoding({bases}, {layout.alignment})"
        case PaddedSharedLayout():
            pairs = [list(pair) for pair in zip(layout.intervals, layout.paddings, strict=True)]
            numbers = f"{pairs}, {list(map(list, layout.offset))}, {list(shape)}, {list(map(list, layout.block))}"
            return f"tlx.padded_shared_layout_encoding.with_bases({numbers})"
        case NvmmaSharedLayout() if not layout.cga_layout:
            return _nvmma(layout, shape, bits, element)
        case TensorMemoryLayout() if not layout.two_ctas and not layout.cga_layout:
            return f"tlx.tensor_memory_layout_encoding({layout.block_m}, {layout.block_n}, {layout.col_stride})"
        case _:
            raise NotExpressible(f"the layout {layout}")


def _nvmma(layout: NvmmaSharedLayout, shape: tuple[int, ...], bits: int, element: Attribute) -> str:
    order = tuple(reversed(range(len(shape))))
    if layout.transposed:
        order = (order[1], order[0], *order[2:])
    widest = default_nvmma_layout(shape, bits, transposed=layout.transposed)
    if layout.swizzling_byte_width not in (0, widest.swizzling_byte_width) or layout.rank != len(shape):
        raise NotExpressible(f"the layout {layout} of a buffer of {list(shape)} elements")
    flags = "" if layout.swizzling_byte_width == widest.swizzling_byte_width else ", swizzled=False"
    flags += ", fp4Padded=True" if layout.fp4_padded else ""
    return f"tlx.nv_mma_shared_layout_encoding({list(shape)}, {list(order)}, {dtype(element)}{flags})"


def _is_default(layout: Layout, shape: tuple[int, ...], bits: int) -> bool:
    if isinstance(layout, TensorMemoryLayout):
        block = (min(shape[-2], 128), min(shape[-1], 256), 1)
        return not layout.two_ctas and (layout.block_m, layout.block_n, layout.col_stride) == block
    return layout == default_shared_layout(shape, bits)
