"""Lowering of allocations and storage aliasing of `tlx`."""

from __future__ import annotations

from typing import NoReturn

from xdsl.ir import Block, SSAValue

from tlx_xdsl.dialects import tlx as dialect, ttg, ttng
from tlx_xdsl.dialects.tlx import ReuseGroupKind, StorageAliasSpecType, StorageKind
from tlx_xdsl.language import tlx
from tlx_xdsl.language.tlx.types import checked_group, checked_spec, not_a_member
from tlx_xdsl.targets import Feature
from tlx_xdsl.text.diagnostics import report_remark, source_location

from ..calls import Call, lowers, lowers_method
from ..types import ir_type
from ..values import (
    BufferedTensor,
    Constexpr,
    ReuseGroup,
    StorageAliasSpec,
    TupleValue,
    Value,
)
from .tlx_common import SMEM, TMEM
from .tlx_encodings import chosen, shared_encoding, tmem_encoding


def _class_name(value: Value) -> str:
    """The name of the class that a value has in the language."""
    return type(value.value).__name__ if isinstance(value, Constexpr) else value.CLASS_NAME or type(value).__name__


@lowers("tlx.storage_alias_spec")
def _storage_alias_spec(call: Call) -> Value:
    size = call.args["buffer_size_bytes"]
    if not isinstance(size, Constexpr):
        message = "buffer_size_bytes must be a compile-time constant"
        call.fail("buffer_size_bytes", message, ValueError(message))
    try:
        storage, explicit = checked_spec(call.python("storage", "a storage_kind"), size.value)
    except ValueError as error:
        call.fail("storage" if "storage" in str(error) else "buffer_size_bytes", str(error), error)
    if storage is tlx.storage_kind.tmem:
        call.require(Feature.TENSOR_MEMORY, what="with tlx.storage_kind.tmem")
    if explicit is not None:
        call.integer("buffer_size_bytes")
    op = dialect.StorageAliasSpecOp(StorageKind(storage.value), explicit)
    return StorageAliasSpec(call.checked(op).result)


@lowers("tlx.local_alloc")
def _local_alloc(call: Call) -> Value:
    shape, element = call.shape(), call.dtype()
    num = call.integer("num", minimum=1)
    storage = call.enum("storage", tlx.storage_kind)
    reuse = _checked_reuse(call, storage)
    if storage is tlx.storage_kind.smemCluster:
        call.fail("storage", "buffers of other CTAs are not allocated: a remote store or copy names the CTA instead")
    if storage is tlx.storage_kind.tmem:
        call.require(Feature.TENSOR_MEMORY, what="with tlx.storage_kind.tmem")
        encoding, space = tmem_encoding(call, "layout", shape, element), TMEM
    else:
        encoding, space = shared_encoding(call, "layout", shape, element), SMEM
    type_ = ttg.MemDescType.get((num, *shape), ir_type(element), chosen(call, "layout", encoding), space)
    return BufferedTensor(_allocate(call, type_, reuse), element, shape, num)


def _allocate(call: Call, type_: ttg.MemDescType, reuse: BufferedTensor | StorageAliasSpec | None) -> SSAValue:
    if isinstance(reuse, StorageAliasSpec):
        return call.emit(dialect.StorageAliasLocalAllocOp, reuse, results=[type_]).result
    if reuse is not None:
        alias = call.emit(dialect.LocalAliasOp, reuse, results=[type_])
        _advise_a_spec(alias, reuse.ssa, "tmem" if type_.memory_space == TMEM else "smem")
        return alias.result
    if type_.memory_space == TMEM:
        return call.emit(ttng.TMEMAllocOp, None, results=[type_, None]).result
    return call.emit(ttg.LocalAllocOp, None, results=[type_]).result


def _advise_a_spec(alias: dialect.LocalAliasOp, reused: SSAValue, storage: str) -> None:
    """Say what to write instead of the reuse of another allocation."""
    name = f"'{reused.name_hint}'" if reused.name_hint else "the reused buffers"
    place = None if isinstance(reused.owner, Block) else source_location(reused.owner.location)
    where = "" if place is None else f", allocated at {place}"
    report_remark(
        alias,
        f"these buffers begin at the first byte of {name}; a storage_alias_spec lets the compiler compute sizes and "
        "offsets",
        [
            f"write 'spec = tlx.storage_alias_spec(storage=tlx.storage_kind.{storage})' and give 'reuse=spec' to both "
            f"allocations: to this one and to {name}{where}",
        ],
    )


def _checked_reuse(call: Call, storage: tlx.storage_kind) -> BufferedTensor | StorageAliasSpec | None:
    """The value of `reuse`, which must be of the same storage; None when there is none."""
    if not call.given("reuse"):
        return None
    reuse = call.args["reuse"]
    if isinstance(reuse, BufferedTensor):
        wanted = TMEM if storage is tlx.storage_kind.tmem else SMEM
        if ttg.memdesc_type(reuse.ssa.type).memory_space != wanted:
            _value_error(call, "reuse tensor has different storage")
        return reuse
    if not isinstance(reuse, StorageAliasSpec):
        _value_error(call, f"reuse must be a buffered_tensor or storage_alias_spec, got {_class_name(reuse)}")
    spec_type = reuse.ssa.type
    assert isinstance(spec_type, StorageAliasSpecType)
    if spec_type.storage.data.value != storage.value:
        _value_error(
            call,
            f"storage_alias_spec storage ({spec_type.storage.data.value}) doesn't match local_alloc storage "
            f"({storage.value})",
        )
    return reuse


def _value_error(call: Call, message: str) -> NoReturn:
    call.fail("reuse", message, ValueError(message))


@lowers("tlx.reuse_group")
def _reuse_group(call: Call) -> Value:
    members = call.of("args", TupleValue, "buffers or groups").items
    try:
        kind, size = checked_group(
            len(members), call.python("group_type", "a reuse_group_type"), call.python("group_size", "an integer")
        )
    except (TypeError, ValueError) as error:
        parameter = next((name for name in ("group_type", "group_size") if name in str(error)), None)
        call.fail(parameter, str(error), error)
    operands: list[SSAValue] = []
    for member in members:
        if not isinstance(member, BufferedTensor | ReuseGroup):
            error = not_a_member(_class_name(member))
            call.fail(None, str(error), error)
        operands.append(member.ssa)
    return ReuseGroup(call.checked(dialect.ReuseGroupOp(operands, ReuseGroupKind(kind.value), size)).result)


@lowers_method(StorageAliasSpec, "set_buffer_overlap", "self", "overlap_def")
def _set_buffer_overlap(call: Call) -> Value:
    """`spec.set_buffer_overlap(group)`."""
    spec = call.of("self", StorageAliasSpec, "a storage_alias_spec")
    group = call.args["overlap_def"]
    if not isinstance(group, ReuseGroup):
        message = f"overlap_def must be a reuse_group, got {_class_name(group)}"
        call.fail("overlap_def", message, TypeError(message))
    _check_members(call, spec, group.ssa)
    call.emit(dialect.SetBufferOverlapOp, spec, group)
    return Constexpr(None)


def _check_members(call: Call, spec: StorageAliasSpec, group: SSAValue) -> None:
    """Check that all allocations of a tree are in the region of `spec`, where the tree was built here."""
    op = group.owner
    if not isinstance(op, dialect.ReuseGroupOp):
        return
    for element in op.elements:
        owner = element.owner
        if isinstance(owner, dialect.ReuseGroupOp):
            _check_members(call, spec, element)
        elif isinstance(owner, dialect.StorageAliasLocalAllocOp):
            if owner.storage_alias is not spec.ssa:
                message = (
                    "all allocations in the reuse_group must reference the same storage_alias_spec, but found an "
                    "allocation that uses a different spec"
                )
                call.fail("overlap_def", message, ValueError(message))
        else:
            message = (
                "all elements in the reuse_group tree must be allocated via tlx.storage_alias_local_alloc, but found "
                "an element that is not"
            )
            call.fail("overlap_def", message, ValueError(message))
