"""Operations that rearrange elements without moving them between threads, and reductions.

A reshape, a transposition, a join and a split keep every element where it is: the layout of the result follows from
that of the source. It is spelled out as a linear layout, which Triton compares with the layout that it infers.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, NoneAttr, TensorType, i32
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import layout_attr, layout_of, shape_of_tensor
from tlx_xdsl.layouts.distributed import joined_layout, reshaped_layout, transposed_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, SliceLayout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before, replace, retype, with_layout

from .converter import Converter, handles


def layout_of_value(value: SSAValue) -> DistributedLayout:
    """The layout of a tensor that has one."""
    return cast(DistributedLayout, layout_of(ttg.tensor_type(value.type).encoding))


def has_layout(value: SSAValue) -> bool:
    """True for a tensor that has a layout, such as one that follows from what the user pins."""
    return not isinstance(ttg.tensor_type(value.type).encoding, NoneAttr)


@handles(tt.ExpandDimsOp)
def expand_dims(converter: Converter, op: tt.ExpandDimsOp) -> None:
    """The operand has the result's layout without the new dimension."""
    converter.settle(op.result)
    parent = cast(DistributedLayout, layout_of(op.result.type.encoding))
    converter.require(op, 0, layout_attr(SliceLayout(op.axis.value.data, parent)))


@handles(tt.BroadcastOp)
def broadcast(converter: Converter, op: tt.BroadcastOp) -> None:
    """Operand and result have one layout."""
    converter.settle(op.result)
    converter.require(op, 0, op.result.type.encoding)


@handles(tt.ReshapeOp)
def reshape(converter: Converter, op: tt.ReshapeOp) -> None:
    """Every element stays in its register, unless the order of elements is free.

    Even then a thread keeps as many elements as it has, which a small tensor whose elements several threads hold may
    have more of than the default layout gives it.
    """
    shape = shape_of_tensor(op.result.type)
    layout = reshaped_layout(layout_of_value(op.src), shape_of_tensor(op.src.type), shape)
    if op.allow_reorder is not None:
        default = reshaped_layout(converter.default_layout(shape), shape, shape)
        if len(default.register) == len(layout.register):
            converter.settle(op.result)
            return
    converter.settle(op.result, layout_attr(layout))


@handles(tt.TransOp)
def trans(converter: Converter, op: tt.TransOp) -> None:
    """Every element stays in its register."""
    order = tuple(int(dim) for dim in op.order.get_values())
    layout = transposed_layout(layout_of_value(op.src), shape_of_tensor(op.src.type), order)
    converter.settle(op.result, layout_attr(layout))


@handles(tt.JoinOp)
def join(converter: Converter, op: tt.JoinOp) -> None:
    """A thread holds the two elements of a pair side by side."""
    shape = shape_of_tensor(op.lhs.type)
    if has_layout(op.result):
        # It follows from a layout that is pinned on an operand, which the other one is brought to.
        half = ttg.tensor_type(op.lhs.type).encoding
    else:
        half = layout_attr(converter.default_layout(shape))
    for index in range(2):
        converter.require(op, index, half)
    converter.settle(op.result, layout_attr(joined_layout(cast(DistributedLayout, layout_of(half)), shape)))


@handles(tt.SplitOp)
def split(converter: Converter, op: tt.SplitOp) -> None:
    """A thread holds the two elements of a pair; those that are pinned need not be side by side."""
    shape = shape_of_tensor(op.out_lhs.type)
    if has_layout(op.out_lhs) and has_layout(op.src):
        return
    half = converter.default_layout(shape)
    converter.require(op, 0, layout_attr(joined_layout(half, shape)))
    for result in op.results:
        converter.settle(result, layout_attr(half))


@handles(tt.CatOp)
def cat(converter: Converter, op: tt.CatOp) -> None:
    """Join pairs whose two elements are then moved apart: one tensor after the other."""
    element = ttg.tensor_type(op.lhs.type).element_type
    shape = shape_of_tensor(op.lhs.type)
    if len(shape) != 1:
        raise error_at(op, f"'tt.cat' takes vectors, found tensors of shape {list(shape)}")

    def tensor(*sizes: int) -> TensorType[Attribute]:
        return TensorType(element, sizes)

    pairs = insert_before(op, tt.JoinOp(operands=[op.lhs, op.rhs], result_types=[tensor(*shape, 2)]))
    order = DenseArrayBase.from_list(i32, [1, 0])
    rows = insert_before(
        op, tt.TransOp(operands=[pairs.result], properties={"order": order}, result_types=[tensor(2, *shape)])
    )
    whole = replace(op, tt.ReshapeOp(operands=[rows.result], result_types=[op.result.type]))
    for made in (pairs, rows, whole):
        converter.convert(made)


@handles(tt.ReduceOp)
def reduction(converter: Converter, op: tt.ReduceOp) -> None:
    """The operands have one layout; a result of it loses the dimension that is reduced."""
    encoding = ttg.tensor_type(op.srcs[0].type).encoding
    for index in range(len(op.srcs)):
        converter.require(op, index, encoding)
    sliced = SliceLayout(op.axis.value.data, layout_of_value(op.srcs[0]))
    for result in op.results:
        # The result of a row is a scalar: nothing can have a slice of a layout of one dimension.
        if (type_ := ttg.as_tensor(result.type)) is not None:
            retype(result, with_layout(type_, layout_attr(sliced)))
