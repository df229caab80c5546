"""Attributes, subscripts and methods: `value.name`, `value[index]` and `value.method(...)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias, cast

from tlx_xdsl import language
from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.language.core import MEMBERS, block_type, constexpr, constexpr_type, int32, pointer_type
from tlx_xdsl.language.tlx.types import storage_kind

from . import semantic
from .calls import METHODS, bind, call_builtin, handled
from .python.foreign import NotInOurLanguage, compile_time
from .python.suggestions import did_you_mean
from .slips import attribute_hint
from .values import (
    Aggregate,
    BlockPointer,
    BufferedTensor,
    ClcResponses,
    Constexpr,
    DescriptorRoom,
    MBarriers,
    Method,
    NewAggregate,
    StorageAliasSpec,
    Tensor,
    TensorDescriptor,
    TupleValue,
    Value,
)
from .visitor import CallSite, Visitor

DESCRIPTOR_BYTES = 128
"""Size and alignment of a TMA descriptor (PTX ISA, "tensormap")."""


def attribute_of(visitor: Visitor, node: ast.Attribute, value: Value) -> Value:
    """`value.attr`."""
    if isinstance(value, Constexpr):
        return _python_attribute(visitor, node, value)
    found = _runtime_attribute(visitor, node, value)
    if found is None:
        suggestion = attribute_hint(value, node.attr) or did_you_mean(node.attr, attribute_names(value))
        raise visitor.error(node, f"{value.describe()} has no attribute '{node.attr}'{suggestion}")
    return found


def _runtime_attribute(visitor: Visitor, node: ast.Attribute, value: Value) -> Value | None:
    name = node.attr
    if (type(value), name) in METHODS:
        return Method(value, name)
    match value:
        case Tensor():
            found = _tensor_attribute(visitor, node, value)
        case StorageAliasSpec():
            found = _spec_attribute(value, name)
        case BufferedTensor():
            found = {"dtype": Constexpr(value.dtype), "shape": Constexpr(value.shape)}.get(name)
        case TensorDescriptor():
            found = _descriptor_attribute(value, name)
        case BlockPointer():
            # As in Triton, the elements' type is `.dtype.element_ty`.
            found = {"dtype": Constexpr(value.base.dtype), "type": Constexpr(value.base.dtype)}.get(name)
        case TupleValue():
            found = value.items[value.names.index(name)] if name in value.names else None
        case Aggregate():
            found = _aggregate_attribute(value, name)
        case NewAggregate():
            found = value.items.get(name)
        case _:
            found = None
    return found


def _spec_attribute(value: StorageAliasSpec, name: str) -> Value | None:
    type_ = value.ssa.type
    assert isinstance(type_, tlx.StorageAliasSpecType)
    storage = storage_kind(type_.storage.data.value)
    return {"storage": Constexpr(storage), "buffer_size_bytes": Constexpr(type_.size_bytes)}.get(name)


def attribute_names(value: Value) -> list[str]:
    """The names of the attributes and methods of a runtime value, or of a number, which may stand for one."""
    kind = Tensor if semantic.is_number(value) else type(value)
    names = [name for cls, name in METHODS if cls is kind]
    match value:
        case Tensor() | Constexpr():
            return [*names, "T", "dtype", "numel", "shape", "type", *MEMBERS]
        case TensorDescriptor():
            return [*names, "block_shape", "dtype", "shape", "strides"]
        case BlockPointer():
            return [*names, "dtype", "type"]
        case BufferedTensor():
            return [*names, "dtype", "shape"]
        case StorageAliasSpec():
            return [*names, "storage", "buffer_size_bytes"]
        case TupleValue():
            return [*names, *value.names]
        case Aggregate():
            return [*names, *value.names, *(name for name in dir(value.cls) if not name.startswith("__"))]
        case NewAggregate():
            return [*names, *value.items]
        case _:
            return names


def _descriptor_attribute(value: TensorDescriptor, name: str) -> Value | None:
    match name:
        case "dtype":
            return Constexpr(value.dtype)
        case "block_shape":
            return Constexpr(value.block_shape)
        case "shape":
            return TupleValue(value.shape)
        case "strides":
            return TupleValue(value.strides)
        case _:
            return None


def _tensor_attribute(visitor: Visitor, node: ast.Attribute, value: Tensor) -> Value | None:
    match node.attr:
        case "dtype":
            return Constexpr(value.dtype)
        case "shape":
            return Constexpr(value.shape)
        case "T":
            if not value.shape:
                return value
            transpose = cast(Any, language).trans
            return call_builtin(CallSite(visitor, node, [(node.value, value)]), transpose)
        case "numel":
            return Constexpr(prod(value.shape))
        case "type":
            return Constexpr(block_type(value.dtype, value.shape) if value.shape else value.dtype)
        case name if name in MEMBERS:
            return Method(value, name, MEMBERS[name])
        case _:
            return None


def _aggregate_attribute(value: Aggregate, name: str) -> Value | None:
    if name in value.names:
        return value.items[value.names.index(name)]
    function = getattr(value.cls, name, None)
    return None if function is None else Method(value, name, function)


def _python_attribute(visitor: Visitor, node: ast.Attribute, value: Constexpr) -> Value:
    owner: Any = value.value
    try:
        found = getattr(owner, node.attr)
    except AttributeError:
        if node.attr == "value":
            # What `tl.constexpr` objects call their content.
            return value
        if node.attr == "type":
            return Constexpr(constexpr_type(owner))
        if isinstance(owner, constexpr_type) and semantic.is_number(of := Constexpr(owner.value)):
            element = visitor.semantic(node, semantic.to_tensor, of).dtype
            if hasattr(element, node.attr):
                return Constexpr(getattr(element, node.attr))
        if semantic.is_number(value) and (attribute := _number_attribute(visitor, node, value)) is not None:
            return attribute
        suggestion = attribute_hint(value, node.attr) or did_you_mean(node.attr, dir(owner))
        raise visitor.error(node, f"{value.describe()} has no attribute '{node.attr}'{suggestion}") from None
    try:
        return Constexpr(compile_time(found))
    except NotInOurLanguage as error:
        raise visitor.error(node, str(error)) from error


def _number_attribute(visitor: Visitor, node: ast.Attribute, value: Constexpr) -> Value | None:
    """An attribute that the number has at run time: a launch makes a constant of an argument that is 1."""
    return _runtime_attribute(visitor, node, visitor.semantic(node, semantic.to_tensor, value))


def subscript_of(visitor: Visitor, node: ast.Subscript, value: Value) -> Value:
    """`value[index]`."""
    if semantic.is_number(value) and _adds_dimensions(_index_parts(node)):
        return _expand(visitor, node, visitor.semantic(node, semantic.to_tensor, value))
    if isinstance(value, TupleValue | Constexpr):
        return _item(visitor, node, value)
    if isinstance(value, BufferedTensor | MBarriers | ClcResponses | DescriptorRoom):
        index = visitor.expression(node.slice)
        visitor.locate(node)
        return view(visitor, node, value, index)
    if isinstance(value, Tensor):
        return _expand(visitor, node, value)
    raise visitor.error(node, f"{value.describe()} can't be indexed")


def _item(visitor: Visitor, node: ast.Subscript, value: TupleValue | Constexpr) -> Value:
    """An item, or a slice, of a tuple or of a compile-time object."""
    index = _index(visitor, node.slice)
    items: Any = value.items if isinstance(value, TupleValue) else value.value
    if not hasattr(items, "__getitem__"):
        raise visitor.error(node, f"{value.describe()} can't be indexed")
    try:
        found = items[index]
    except (IndexError, KeyError, TypeError) as error:
        if isinstance(items, tuple | list) and isinstance(index, int):
            count = len(cast(tuple[Any, ...], items))
            raise visitor.error(node.slice, f"index {index} is outside the {count} items of the tuple") from error
        raise visitor.error(node.slice, f"{value.describe()} has no item {index!r}") from error
    if isinstance(value, TupleValue):
        return TupleValue(cast(tuple[Value, ...], found)) if isinstance(found, tuple) else cast(Value, found)
    return Constexpr(found.value if isinstance(found, constexpr) else found)


def _index(visitor: Visitor, node: ast.expr) -> Any:
    """The compile-time index or slice of a tuple."""
    if isinstance(node, ast.Slice):
        bounds = [None if bound is None else _index(visitor, bound) for bound in (node.lower, node.upper, node.step)]
        return slice(*bounds)
    index = visitor.expression(node)
    if not isinstance(index, Constexpr):
        raise visitor.error(node, f"a tuple is indexed by a constexpr integer, found {index.describe()}")
    return index.value


Array: TypeAlias = BufferedTensor | MBarriers | ClcResponses | DescriptorRoom
"""Values that `array[i]` picks one element of."""


def _is_row(buffer: BufferedTensor) -> bool:
    """Say whether this is one buffer of one dimension, whose elements are buffers of one element."""
    return not buffer.num and len(buffer.shape) == 1


def view(visitor: Visitor, node: ast.AST, value: Array, index: Value) -> Value:
    """Buffer, barrier, response or descriptor `index` of an array."""
    count = value.shape[0] if isinstance(value, BufferedTensor) and _is_row(value) else value.num
    if not count:
        raise visitor.error(node, f"{value.describe()} has no buffers to choose from")
    if isinstance(index, Constexpr):
        if not isinstance(index.value, int):
            raise visitor.error(node, f"a buffer is chosen by an integer, found {index.describe()}")
        if not 0 <= index.value < count:
            raise visitor.error(node, f"index {index.value} is outside of {value.describe()}")
    position: Tensor = visitor.semantic(node, semantic.to_tensor, index)
    if position.shape or isinstance(position.dtype, pointer_type) or not position.dtype.is_int():
        raise visitor.error(node, f"a buffer is chosen by a scalar integer, found {position.describe()}")
    position = visitor.semantic(node, semantic.cast, position, int32)
    if isinstance(value, DescriptorRoom):
        number = index if isinstance(index, Constexpr) else position
        offset = visitor.semantic(node, semantic.binary, "*", number, Constexpr(DESCRIPTOR_BYTES))
        offset = visitor.semantic(node, semantic.to_tensor, offset)
        return DescriptorRoom(visitor.builder.insert(tt.AddPtrOp(value.ssa, offset.ssa)).result, 0)
    source = ttg.memdesc_type(value.ssa.type)
    if isinstance(value, BufferedTensor) and _is_row(value):
        element = ttg.MemDescType.get(
            (1,), source.element_type, source.encoding, source.memory_space,
            mutable=source.is_mutable, alloc_shape=source.alloc_shape,
        )  # fmt: skip
        return replace(
            value,
            ssa=visitor.builder.emit(tlx.MemDescDynamicSubsliceOp, value, [position], results=[element]).result,
            shape=(1,),
        )
    result = ttg.MemDescType.get(
        source.shape[1:], source.element_type, source.encoding, source.memory_space, mutable=source.is_mutable
    )
    return replace(value, ssa=visitor.builder.emit(ttg.MemDescIndexOp, value, position, results=[result]).result, num=0)


def _expand(visitor: Visitor, node: ast.Subscript, value: Tensor) -> Value:
    """`block[:, None]`: None inserts a dimension of size 1, `:` keeps one, `...` keeps those that are left."""
    parts = _index_parts(node)
    kinds = [_index_kind(visitor, part) for part in parts] if value.shape or _adds_dimensions(parts) else []
    if not kinds:
        way = ": read with tl.load(pointer + index)" if isinstance(value.dtype, pointer_type) else ""
        raise visitor.error(node, f"unsupported tensor index: {value.describe()} can't be indexed{way}")
    # Triton takes the dimensions that None adds to a scalar for those that `:` keeps.
    if kinds.count(":") > len(value.shape or parts):
        raise visitor.error(node, f"too many indices for {value.describe()}")
    if kinds.count("...") > 1:
        raise visitor.error(node, "an index has at most one '...'")
    axis = 0
    for kind in kinds:
        if kind == "...":
            axis += len(value.shape) - axis - (kinds[kinds.index("...") :].count(":"))
        elif kind == "None":
            value = visitor.semantic(node, semantic.expand_dims, value, axis)
            axis += 1
        else:
            axis += 1
    return value


def _index_parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _adds_dimensions(parts: Sequence[ast.expr]) -> bool:
    """True for an index that a scalar can have: None or `...`, and `:` beside them."""
    plain = [isinstance(part, ast.Constant) and part.value in (None, ...) for part in parts]
    return any(plain) and all(
        is_plain or isinstance(part, ast.Slice) for part, is_plain in zip(parts, plain, strict=True)
    )


def _index_kind(visitor: Visitor, part: ast.expr) -> str:
    if isinstance(part, ast.Slice) and all(_is_none(visitor, each) for each in (part.lower, part.upper, part.step)):
        return ":"
    if isinstance(part, ast.Constant) and part.value is ...:
        return "..."
    if not isinstance(part, ast.Slice):
        index = visitor.expression(part)
        if isinstance(index, Constexpr) and index.value is None:
            return "None"
    raise visitor.error(
        part, "unsupported tensor index: a block is indexed by ':', None and '...' only (tl.gather picks elements)"
    )


def _is_none(visitor: Visitor, bound: ast.expr | None) -> bool:
    """Say whether the bound of a slice is absent, or None."""
    if bound is None:
        return True
    value = visitor.expression(bound)
    return isinstance(value, Constexpr) and value.value is None


# --- methods --------------------------------------------------------------------------------------------------------


def call_method(site: CallSite, method: Method) -> Value:
    """Call `method` with arguments, of which the first is the receiver."""
    handler, signature = METHODS[type(method.receiver), method.name]
    return handled(handler, bind(site, method.name, signature))
