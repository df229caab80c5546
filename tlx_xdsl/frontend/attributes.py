"""What `value.name`, `value[index]` and `value.method(...)` mean."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tlx_xdsl.dialects import ttg
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, bind
from tlx_xdsl.frontend.semantic import SemanticError
from tlx_xdsl.frontend.values import (
    NONE,
    BufferedTensor,
    Constexpr,
    MBarriers,
    Method,
    StorageAliasSpec,
    Tensor,
    TensorDescriptor,
    TupleValue,
    Value,
)
from tlx_xdsl.language.core import dtype, int32, pointer_type

if TYPE_CHECKING:
    from tlx_xdsl.frontend.visitor import Visitor


def attribute_of(visitor: Visitor, node: ast.Attribute, value: Value) -> Value:
    """`value.attr`."""
    name = node.attr
    if (type(value), name) in METHODS:
        return Method(value, name)
    match value, name:
        case Constexpr(), _:
            return _python_attribute(visitor, node, value)
        case ((Tensor() | BufferedTensor() | TensorDescriptor()), "dtype"):
            return Constexpr(value.dtype)
        case ((Tensor() | BufferedTensor()), "shape"):
            return Constexpr(value.shape)
        case TensorDescriptor(), "block_shape":
            return Constexpr(value.block_shape)
        case TensorDescriptor(), "shape":
            return TupleValue(value.shape)
        case TensorDescriptor(), "strides":
            return TupleValue(value.strides)
        case _:
            raise visitor.error(node, f"{value.describe()} has no attribute '{name}'")


def _python_attribute(visitor: Visitor, node: ast.Attribute, value: Constexpr) -> Value:
    try:
        found = getattr(value.value, node.attr)
    except AttributeError:
        owner = getattr(value.value, "__name__", None) or value.describe()
        raise visitor.error(node, f"'{owner}' has no attribute '{node.attr}'") from None
    return Constexpr(found)


def subscript_of(visitor: Visitor, node: ast.Subscript, value: Value) -> Value:
    """`value[index]`."""
    items = visitor.items_of(value)
    if items is not None:
        return _tuple_item(visitor, node, items)
    if isinstance(value, BufferedTensor | MBarriers):
        index = visitor.expression(node.slice)
        visitor.locate(node)
        return view(visitor, node, value, index)
    if isinstance(value, Tensor) and value.shape:
        return _expand(visitor, node, value)
    raise visitor.error(node, f"{value.describe()} can't be indexed")


def _tuple_item(visitor: Visitor, node: ast.Subscript, items: tuple[Value, ...]) -> Value:
    index = visitor.expression(node.slice)
    if not isinstance(index, Constexpr) or not isinstance(index.value, int):
        raise visitor.error(node.slice, f"a tuple is indexed by a constexpr integer, found {index.describe()}")
    if not -len(items) <= index.value < len(items):
        raise visitor.error(node.slice, f"index {index.value} is outside the {len(items)} items of the tuple")
    return items[index.value]


def view(visitor: Visitor, node: ast.AST, value: BufferedTensor | MBarriers, index: Value) -> Value:
    """Buffer or barrier `index` of an array."""
    if not value.num:
        raise visitor.error(node, f"{value.describe()} has no buffers to choose from")
    if isinstance(index, Constexpr):
        if not isinstance(index.value, int):
            raise visitor.error(node, f"a buffer is chosen by an integer, found {index.describe()}")
        if not 0 <= index.value < value.num:
            raise visitor.error(node, f"index {index.value} is outside of {value.describe()}")
    position: Tensor = visitor.semantic(node, semantic.to_tensor, index)
    if position.shape or isinstance(position.dtype, pointer_type) or not position.dtype.is_int():
        raise visitor.error(node, f"a buffer is chosen by a scalar integer, found {position.describe()}")
    position = visitor.semantic(node, semantic.cast, position, int32)
    source = memdesc_type(value.ssa.type)
    result = MemDescType.get(
        source.shape[1:], source.element_type, source.encoding, source.memory_space, mutable=source.is_mutable
    )
    op = ttg.MemDescIndexOp(operands=[value.ssa, position.ssa], result_types=[result])
    ssa = visitor.builder.insert(op).result
    if isinstance(value, MBarriers):
        return MBarriers(ssa, 0)
    return BufferedTensor(ssa, value.dtype, value.shape, 0)


def _expand(visitor: Visitor, node: ast.Subscript, value: Tensor) -> Value:
    """`block[:, None]`: None inserts a dimension of size 1, a full slice keeps one."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    axis = 0
    for part in parts:
        if isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None:
            axis += 1
            continue
        if isinstance(part, ast.Constant) and part.value is None:
            value = visitor.semantic(node, semantic.expand_dims, value, axis)
            axis += 1
            continue
        raise visitor.error(part, "a block is indexed by ':' and None only")
    if axis > len(value.shape):
        raise visitor.error(node, f"too many indices for {value.describe()}")
    return value


# --- methods --------------------------------------------------------------------------------------------------------


def _to(call: Call) -> Value:
    receiver = call.of("self", Tensor, "a runtime value")
    return semantic.cast(call.builder, receiver, call.dtype())


def _set_buffer_overlap(call: Call) -> Value:
    from tlx_xdsl.frontend.lower.tlx_storage import set_buffer_overlap

    return set_buffer_overlap(call)


def _to_signature(self: Any, dtype: dtype) -> None: ...


def _overlap_signature(self: Any, overlap_def: Any) -> None: ...


METHODS: dict[tuple[type[Any], str], tuple[Callable[[Call], Value], inspect.Signature]] = {
    (Tensor, "to"): (_to, inspect.signature(_to_signature)),
    (StorageAliasSpec, "set_buffer_overlap"): (_set_buffer_overlap, inspect.signature(_overlap_signature)),
}
"""Methods by the class of the receiver, with the signature that their arguments are bound to."""


def call_method(
    visitor: Visitor,
    node: ast.Call,
    method: Method,
    positional: list[tuple[ast.expr, Value]],
    keywords: dict[str, tuple[ast.expr, Value]],
) -> Value:
    """Call `method` with arguments."""
    handler, signature = METHODS[type(method.receiver), method.name]
    receiver = (node.func, method.receiver)
    call = bind(visitor, node, method.name, signature, [receiver, *positional], keywords)
    try:
        return handler(call) or NONE
    except SemanticError as error:
        raise visitor.error(node, f"{method.name}: {error}") from error
