"""What the functions of `tlx` for buffers and storage aliasing become."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute

from tlx_xdsl.dialects import tlx as tlx_dialect
from tlx_xdsl.dialects import ttg
from tlx_xdsl.dialects.tlx.types import ReuseGroupKind, StorageAliasSpecType, StorageKind
from tlx_xdsl.dialects.ttg.attrs import NvmmaSharedEncodingAttr, layout_attr
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type
from tlx_xdsl.frontend.attributes import view
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.types import ir_type
from tlx_xdsl.frontend.values import (
    BufferedTensor,
    Constexpr,
    MBarriers,
    ReuseGroup,
    StorageAliasSpec,
    Tensor,
    TupleValue,
    Value,
)
from tlx_xdsl.language import tlx
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout
from tlx_xdsl.layouts.shared import default_shared_layout
from tlx_xdsl.text.diagnostics import error_at

SMEM = ttg.SharedMemorySpaceAttr()


@lowers("tlx.storage_alias_spec")
def _storage_alias_spec(call: Call) -> Value:
    storage = call.enum("storage", tlx.storage_kind)
    if storage is tlx.storage_kind.smemCluster:
        call.fail("storage", "smemCluster storage is not supported for storage_alias_spec")
    size = None
    if call.given("buffer_size_bytes"):
        size = call.integer("buffer_size_bytes")
        if size <= 0:
            call.fail("buffer_size_bytes", f"buffer_size_bytes must be positive, got {size}")
    op = tlx_dialect.StorageAliasSpecOp(StorageKind(storage.value), size)
    return StorageAliasSpec(call.builder.insert(op).result)


@lowers("tlx.local_alloc")
def _local_alloc(call: Call) -> Value:
    shape, element = call.shape(), call.dtype()
    num = call.integer("num", minimum=1)
    storage = call.enum("storage", tlx.storage_kind)
    if call.given("layout"):
        call.fail("layout", "a layout of the user's own is not supported yet")
    spec = _spec_to_reuse(call, storage)
    if storage is not tlx.storage_kind.smem:
        call.fail("storage", f"{storage.name} allocations are not supported yet")
    encoding = layout_attr(default_shared_layout(shape, element.primitive_bitwidth))
    type_ = MemDescType.get((num, *shape), ir_type(element), encoding, SMEM)
    if spec is None:
        ssa = call.builder.insert(ttg.LocalAllocOp(operands=[None], result_types=[type_])).result
    else:
        op = tlx_dialect.StorageAliasLocalAllocOp(operands=[spec.ssa], result_types=[type_])
        ssa = call.builder.insert(op).result
    return BufferedTensor(ssa, element, shape, num)


def _spec_to_reuse(call: Call, storage: tlx.storage_kind) -> StorageAliasSpec | None:
    """The spec that `reuse` names; None when there is none."""
    if not call.given("reuse"):
        return None
    reuse = call.args["reuse"]
    if isinstance(reuse, BufferedTensor):
        call.fail(
            "reuse",
            "reuse of a buffered_tensor is not supported yet: allocate both from one storage_alias_spec",
        )
    if not isinstance(reuse, StorageAliasSpec):
        call.fail("reuse", f"reuse must be a buffered_tensor or storage_alias_spec, got {reuse.describe()}")
    spec_type = reuse.ssa.type
    assert isinstance(spec_type, StorageAliasSpecType)
    if spec_type.storage.data.value != storage.value:
        call.fail(
            "reuse",
            f"storage_alias_spec storage ({spec_type.storage.data.value}) doesn't match local_alloc storage "
            f"({storage.value})",
        )
    return reuse


@lowers("tlx.reuse_group")
def _reuse_group(call: Call) -> Value:
    members = call.of("args", TupleValue, "buffers or groups").items
    if not members:
        call.fail(None, "reuse_group requires at least one element")
    kind = call.enum("group_type", tlx.reuse_group_type)
    size = call.integer("group_size")
    if size < 1:
        call.fail("group_size", f"group_size must be a positive integer, got {size}")
    for member in members:
        if not isinstance(member, BufferedTensor | ReuseGroup):
            call.fail(None, f"reuse_group elements must be buffered_tensor or reuse_group, got {member.describe()}")
    op = tlx_dialect.ReuseGroupOp(
        [member.ssa for member in members if isinstance(member, BufferedTensor | ReuseGroup)],
        ReuseGroupKind(kind.value),
        size,
    )
    return ReuseGroup(call.builder.insert(op).result)


def set_buffer_overlap(call: Call) -> Value:
    """`spec.set_buffer_overlap(group)`."""
    spec = call.of("self", StorageAliasSpec, "a storage_alias_spec")
    group = call.of("overlap_def", ReuseGroup, "a reuse_group")
    call.builder.insert(tlx_dialect.SetBufferOverlapOp(operands=[spec.ssa, group.ssa]))
    return Constexpr(None)


# --- access ---------------------------------------------------------------------------------------------------------


@lowers("tlx.local_view")
def _local_view(call: Call) -> Value:
    buffers = call.args["local_allocated_buffers"]
    if not isinstance(buffers, BufferedTensor | MBarriers):
        call.expected("local_allocated_buffers", "an array of buffers or mbarriers")
    return view(call.visitor, call.node, buffers, call.args["buffer_idx"])


def one_buffer(call: Call, parameter: str) -> BufferedTensor:
    """The argument, which must be one buffer and not an array of them."""
    buffer = call.of(parameter, BufferedTensor, "a buffer")
    if buffer.num:
        call.fail(parameter, f"'{parameter}' must be one buffer, such as buf[i], found {buffer.describe()}")
    return buffer


@lowers("tlx.local_load")
def _local_load(call: Call) -> Value:
    buffer = one_buffer(call, "src")
    op = ttg.LocalLoadOp(operands=[buffer.ssa, None], result_types=[ir_type(buffer.dtype, buffer.shape)])
    return Tensor(call.builder.insert(op).result, buffer.dtype, buffer.shape)


@lowers("tlx.local_store")
def _local_store(call: Call) -> Value | None:
    buffer = one_buffer(call, "dst")
    source = call.tensor("src")
    if (source.dtype, source.shape) != (buffer.dtype, buffer.shape):
        call.fail("src", f"'src' must be a block like {buffer.describe()}, found {source.describe()}")
    call.builder.insert(ttg.LocalStoreOp(operands=[source.ssa, buffer.ssa]))
    return None


@lowers("tlx.local_trans")
def _local_trans(call: Call) -> Value:
    buffer = one_buffer(call, "input")
    order = call.integers("dims")
    if sorted(order) != list(range(len(buffer.shape))):
        call.fail("dims", f"'dims' must be a permutation of the {len(buffer.shape)} dimensions, found {list(order)}")
    shape = tuple(buffer.shape[dim] for dim in order)
    source = memdesc_type(buffer.ssa.type)
    result = source.with_shape(shape).with_encoding(_transposed_encoding(call, source.encoding, order))
    op = ttg.MemDescTransOp(
        operands=[buffer.ssa],
        properties={"order": DenseArrayBase.from_list(i32, list(order))},
        result_types=[result],
    )
    return BufferedTensor(call.builder.insert(op).result, buffer.dtype, shape, 0)


def _transposed_encoding(call: Call, encoding: Attribute, order: tuple[int, ...]) -> Attribute:
    if order == tuple(range(len(order))):
        return encoding
    if isinstance(encoding, NvmmaSharedEncodingAttr) and order == (1, 0):
        layout = encoding.data
        assert isinstance(layout, NvmmaSharedLayout)
        return layout_attr(
            NvmmaSharedLayout(
                layout.swizzling_byte_width,
                not layout.transposed,
                layout.element_bit_width,
                layout.fp4_padded,
                layout.rank,
                layout.cga_layout,
            )
        )
    raise error_at(call.builder.location, f"a buffer with the layout {encoding} can't be transposed yet")
