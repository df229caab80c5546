"""Changing the encodings of all types of a module at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects.base import LayoutWrapper, as_tensor
from tlx_xdsl.dialects.tlx import AssertSameLayoutExpectedOp
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.dialects.ttg import MemDescType

from ..rewriting import ops_of, retype, retyped, with_layout

EncodingMap: TypeAlias = Callable[[Attribute, bool], Attribute]
"""From the encoding of a type, and whether it is a buffer's, to the one that it shall have."""


def map_encodings(module: ModuleOp, change: EncodingMap) -> None:
    """Change the encodings of all values, constants, functions and expectations of `module`."""
    map_types(module, lambda type_: _changed(type_, change))
    for op in ops_of(module, AssertSameLayoutExpectedOp):
        op.expected = change(op.expected, isinstance(op.src.type, MemDescType))


def map_types(module: ModuleOp, change: Callable[[Attribute], Attribute]) -> None:
    """Change the types of all tensors and buffers of `module`, in constants and functions, too."""
    known: dict[Attribute, Attribute] = {}

    def mapped(type_: Attribute) -> Attribute:
        if type_ not in known:
            known[type_] = change(type_)
        return known[type_]

    for op in module.walk():
        for value in values_of(op):
            type_: Attribute = value.type
            if isinstance(type_, MemDescType | TensorType):
                retype(value, mapped(cast(Attribute, type_)))
        if isinstance(op, FuncOp):
            types = op.function_type
            op.function_type = FunctionType.from_lists(
                [mapped(type_) for type_ in types.inputs], [mapped(type_) for type_ in types.outputs]
            )
        elif isinstance(op, ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            give_constant_its_type(op)


def without(encoding: Attribute, mark: type[LayoutWrapper]) -> Attribute:
    """`encoding` with every wrapper of class `mark` in it replaced by what it wraps."""
    if isinstance(encoding, mark):
        return without(encoding.wrapped, mark)
    if isinstance(encoding, LayoutWrapper) and (inner := without(encoding.wrapped, mark)) != encoding.wrapped:
        return type(encoding).new([inner])
    return encoding


def values_of(op: Operation) -> list[SSAValue]:
    """The results of `op` and the arguments of its blocks."""
    return [*op.results, *(argument for region in op.regions for block in region.blocks for argument in block.args)]


def give_constant_its_type(op: ConstantOp) -> None:
    """Let the attribute of a tensor constant have the type of the result."""
    value = op.value
    if isinstance(value, DenseIntOrFPElementsAttr) and value.type != op.result.type:
        op.properties["value"] = retyped(value, op.result.type)


def _changed(type_: Attribute, change: EncodingMap) -> Attribute:
    if isinstance(type_, MemDescType):
        encoding = change(type_.encoding, True)
        return type_ if encoding is type_.encoding else type_.with_encoding(encoding)
    if (tensor := as_tensor(type_)) is not None:
        encoding = change(tensor.encoding, False)
        return tensor if encoding is tensor.encoding else with_layout(tensor, encoding)
    return type_
