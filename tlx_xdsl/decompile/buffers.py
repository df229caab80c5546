"""Buffers in shared and tensor memory: allocations, views, loads and stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.base.layouts import layout_of
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.layouts.encodings import (
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)

from .function import Function, handles, prop
from .memory import offsets
from .types import (
    ATOM,
    NotExpressible,
    Text,
    buffer_layout,
    call,
    dtype,
    element_of,
    full,
    method,
    number_of,
    shape_of,
    tupled,
)

_WARP = 32
"""Threads of a warp."""


def _rank(type_: MemDescType) -> int:
    """Dimensions of one buffer; an array of buffers has one more."""
    layout = layout_of(type_.encoding)
    match layout:
        case SwizzledSharedLayout():
            return len(layout.order)
        case NvmmaSharedLayout():
            return layout.rank
        case SharedLinearLayout() | PaddedSharedLayout():
            return len(layout.offset[0])
        case _:
            return 2


def _is_array(type_: MemDescType) -> bool:
    return len(type_.shape) > _rank(type_)


def _allocation(type_: MemDescType, reuse: Text | None = None) -> Text:
    """`tlx.local_alloc` of buffers of a type, or of one buffer."""
    shape = type_.shape[1:] if _is_array(type_) else type_.shape
    number = type_.shape[0] if _is_array(type_) else 1
    tensor_memory = isinstance(type_.memory_space, TensorMemorySpaceAttr)
    return call(
        "tlx.local_alloc",
        tupled(shape),
        dtype(type_.element_type),
        number,
        storage="tlx.storage_kind.tmem" if tensor_memory else None,
        reuse=reuse,
        layout=buffer_layout(layout_of(type_.encoding), shape, type_.element_bits, type_.element_type),
    )


def _views(value: SSAValue) -> Iterator[Operation]:
    """The users of an array of barriers and of its elements, also inside of tasks."""
    for use in value.uses:
        yield use.operation
        if use.operation.name == "ttg.memdesc_index":
            yield from _views(use.operation.results[0])
        elif use.operation.name == "ttg.warp_specialize.partitions":
            for region in use.operation.regions:
                yield from _views(region.block.args[use.index])


@handles("ttg.local_alloc", "ttng.tmem_alloc")
def _alloc(fn: Function, op: Any) -> Text | None:
    type_ = memdesc_type(op.result.type)
    users = list(_views(op.result))
    starts = [user for user in users if user.name == "ttng.init_barrier"]
    if starts:
        return _barriers(fn, type_, users, starts)
    text = _allocation(type_)
    if _is_array(type_) and op.src is None:
        return text
    name = fn.name(op.result)
    fn.write(f"{name} = {text}")
    fn.bind(op.result, f"{name}[0]")
    if op.src is not None:
        fn.write(str(call("tlx.local_store", f"{name}[0]", fn.typed(op.src))))
    return None


def _barriers(fn: Function, type_: MemDescType, users: list[Operation], starts: list[Any]) -> Text:
    counts = {prop(start, "count") for start in starts}
    if len(counts) != 1 or len(starts) != type_.shape[0]:
        raise NotExpressible("barriers of one array that wait for different numbers of arrivals")
    fn.module.skipped.update(starts)
    count = counts.pop()
    if any(user.name == "tlx.arrive_per_thread" for user in users):
        return call("tlx.alloc_warp_barrier", type_.shape[0], num_warps=count // _WARP)
    return call("tlx.alloc_barriers", type_.shape[0], arrive_count=None if count == 1 else count)


@handles("ttng.init_barrier")
def _init(fn: Function, op: Any) -> None:
    raise NotExpressible("the initialisation of a barrier that is no element of an array")


@handles("ttng.inval_barrier", "ttg.local_dealloc")
def _ends(fn: Function, op: Any) -> None:
    """The end of a barrier's or buffer's life is left to the compiler."""


# --- storage aliasing -------------------------------------------------------------------------------------------------


@handles("tlx.storage_alias_spec")
def _spec(fn: Function, op: Any) -> Text:
    kind = op.result.type.storage.data.value
    storage = None if kind == "smem" else f"tlx.storage_kind.{kind}"
    return call("tlx.storage_alias_spec", storage=storage, buffer_size_bytes=prop(op, "buffer_size_bytes"))


@handles("tlx.storage_alias_local_alloc")
def _aliased(fn: Function, op: Any) -> Text:
    if prop(op, "buffer_offset") is not None:
        raise NotExpressible("a buffer whose offset in its region is computed already")
    return _allocation(memdesc_type(op.result.type), fn.text(op.storage_alias))


@handles("tlx.local_alias", "ttg.memdesc_reinterpret")
def _reused(fn: Function, op: Any) -> Text:
    """Buffers of another type over the memory of others."""
    source, result = memdesc_type(op.src.type), memdesc_type(op.result.type)
    if _is_array(result) and _is_array(source):
        return _allocation(result, fn.text(op.src))
    if _is_array(result) or _is_array(source):
        raise NotExpressible(f"'{op.name}' between a buffer and an array of buffers")
    return fn.call(
        "tlx.local_reinterpret",
        op.src,
        dtype(result.element_type),
        list(result.shape),
        layout=buffer_layout(layout_of(result.encoding), result.shape, result.element_bits, result.element_type),
    )


@handles("tlx.reuse_group")
def _group(fn: Function, op: Any) -> Text:
    size = prop(op, "group_size")
    kind = prop(op, "group_kind").data.value
    return call(
        "tlx.reuse_group",
        *(fn.text(element) for element in op.elements),
        group_type=None if kind == "shared" else f"tlx.reuse_group_type.{kind}",
        group_size=None if size == 1 else size,
    )


@handles("tlx.set_buffer_overlap")
def _overlap(fn: Function, op: Any) -> Text:
    return method(fn.text(op.storage_alias_spec), "set_buffer_overlap", fn.text(op.overlap_def))


# --- views ------------------------------------------------------------------------------------------------------------


@handles("ttg.memdesc_index")
def _index(fn: Function, op: Any) -> Text:
    return Text(f"{fn.text(op.src).within(ATOM)}[{fn.text(op.index)}]")


@handles("tlx.map_to_remote")
def _remote(fn: Function, op: Any) -> Text:
    return fn.call("tlx.remote_view", op.src, op.rank)


@handles("ttg.memdesc_trans")
def _trans(fn: Function, op: Any) -> Text:
    order = prop(op, "order")
    return fn.call("tlx.local_trans", op.src, None if order == (1, 0) else tupled(order))


@handles("ttg.memdesc_reshape")
def _reshape(fn: Function, op: Any) -> Text:
    return fn.call("tlx.local_reshape", op.src, list(memdesc_type(op.result.type).shape))


@handles("ttg.memdesc_subslice")
def _slice(fn: Function, op: Any) -> Text:
    return fn.call("tlx.local_slice", op.src, list(prop(op, "offsets")), list(memdesc_type(op.result.type).shape))


@handles("tlx.memdesc_dynamic_subslice")
def _dynamic_slice(fn: Function, op: Any) -> Text:
    shape = list(memdesc_type(op.result.type).shape)
    return fn.call("tlx.local_slice", op.src, offsets(fn, op.offsets), shape)


@handles("ttng.tmem_subslice")
def _tmem_slice(fn: Function, op: Any) -> Text:
    shape = list(memdesc_type(op.result.type).shape)
    dim = len(shape) - 1 if prop(op, "dim") is None else prop(op, "dim")
    places = [0] * len(shape)
    places[dim] = prop(op, "offset")
    return fn.call("tlx.local_slice", op.src, places, shape)


# --- loads and stores of threads --------------------------------------------------------------------------------------


@handles("ttg.local_load")
def _local_load(fn: Function, op: Any) -> Text:
    return fn.call("tlx.local_load", op.src, token=op.token)


@handles("ttng.tmem_load")
def _tmem_load(fn: Function, op: Any) -> Text:
    if prop(op, "redOp") is not None:
        raise NotExpressible("a reducing load from tensor memory")
    return fn.call("tlx.local_load", op.src)


@handles("ttg.local_store")
def _local_store(fn: Function, op: Any) -> Text:
    return fn.call("tlx.local_store", op.dst, _block(fn, op.src))


@handles("ttng.tmem_store")
def _tmem_store(fn: Function, op: Any) -> Text:
    if number_of(op.pred) is not True:
        raise NotExpressible("a store to tensor memory with a predicate")
    return fn.call("tlx.local_store", op.dst, _block(fn, op.src))


def _block(fn: Function, value: SSAValue) -> Text:
    number = number_of(value)
    return fn.typed(value) if number is None else full(shape_of(value), number, element_of(value.type))


@handles("ttg.local_gather")
def _gather(fn: Function, op: Any) -> Text:
    return fn.call("tlx.local_gather", op.src, fn.typed(op.indices), prop(op, "axis"))


@handles("ttg.local_scatter")
def _scatter(fn: Function, op: Any) -> Text:
    return fn.call(
        "tlx.local_scatter",
        op.dst,
        fn.typed(op.values),
        fn.typed(op.indices),
        prop(op, "axis"),
    )
