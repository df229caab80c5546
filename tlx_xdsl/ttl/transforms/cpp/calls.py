"""Operations of `ttkernel` as calls of Metalium's API, as the profile spells them.

An operation without a function here is a call of the function of its name with its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, IntegerType, StringAttr, f32, i32
from xdsl.dialects.emitc import EmitC_OpaqueAttr, EmitC_PointerType
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import constant_integer
from tlx_xdsl.ttl.dialects import ttkernel
from tlx_xdsl.ttl.dialects.emitc.expressions import LiteralOp, SubscriptOp
from tlx_xdsl.ttl.dialects.ttcore import format_of
from tlx_xdsl.ttl.dialects.ttkernel.base import TTKernelOp
from tlx_xdsl.ttl.language.tensors import DTYPES

from .conversion import ADDRESS, Conversion, opaque

_NOC_ADDRESS = IntegerType(64, ADDRESS.signedness.data)
_L1_WORD = EmitC_PointerType(opaque("volatile tt_l1_ptr uint32_t"))
_ALONG_COLUMNS: tuple[int, ...] = (1,)
_ALONG_ROWS: tuple[int, ...] = (0,)


@singledispatch
def convert_call(op: TTKernelOp, to: Conversion) -> None:
    """Emit the calls that an operation is."""
    if op.properties:
        raise error_at(op, f"there is no C++ for {op.name} with attributes")
    result = None
    if op.results:
        result = _NOC_ADDRESS if isinstance(op.results[0].type, ttkernel.NocAddressType) else ADDRESS
    value = to.call(_callee(op, to), _operands(op, to), result)
    if value is not None:
        if result is _NOC_ADDRESS:
            value.name_hint = op.results[0].name_hint or "destination"
        to.set(op.results[0], value)


def _callee(op: TTKernelOp, to: Conversion) -> str:
    return to.profile.callee(op.name.removeprefix("ttkernel."))


def _operands(op: TTKernelOp, to: Conversion) -> list[SSAValue]:
    return [to.value(operand) for operand in op.operands]


# --- arguments, places, tensors


@convert_call.register
def _compile_time_arg(op: ttkernel.GetCompileTimeArgValOp, to: Conversion) -> None:
    if to.has(op.result):
        return
    number = IntegerAttr(op.index.value.data, i32)
    value = to.result("get_compile_time_arg_val", [], opaque("constexpr uint32_t"), arguments=[number])
    value.name_hint = to.buffer_name(op)
    to.set(op.result, value)


@convert_call.register
def _common_arg(op: ttkernel.GetCommonArgValOp, to: Conversion) -> None:
    number = IntegerAttr(op.index.value.data, i32)
    value = to.result("get_common_arg_val", [], ADDRESS, template=["uint32_t"], arguments=[number])
    user = next((use.operation for use in op.result.uses), None)
    if op.result.name_hint is None and isinstance(user, ttkernel.TensorAccessorOp):
        value.name_hint = _with(_tensor_name(user, to), "address")
    to.set(op.result, value)


@convert_call.register
def _accessor_args(op: ttkernel.TensorAccessorArgsOp, to: Conversion) -> None:
    cta = op.cta.value.data
    first = str(cta)
    if to.profile.has_startup and to.buffer_count:
        # A tensor has as many words as its layout takes: the headers count them.
        offset = f"<{cta - to.buffer_count}, {to.buffer_count}>()"
        first = f"tensor_accessor::detail::get_tensor_accessor_args_cta_offset{offset}"
    value = to.result("TensorAccessorArgs", [], opaque("constexpr auto"), template=[first, str(op.crta.value.data)])
    value.name_hint = op.result.name_hint or _with(to.tensor_name(op), "args")
    to.set(op.result, value)


@convert_call.register
def _accessor(op: ttkernel.TensorAccessorOp, to: Conversion) -> None:
    value = to.result("TensorAccessor", _operands(op, to), opaque("const auto"))
    value.name_hint = op.result.name_hint or _tensor_name(op, to)
    to.set(op.result, value)


def _tensor_name(op: ttkernel.TensorAccessorOp, to: Conversion) -> str | None:
    args = op.args.owner
    return to.tensor_name(args) if isinstance(args, ttkernel.TensorAccessorArgsOp) else None


def _with(name: str | None, ending: str) -> str | None:
    return None if name is None else f"{name}_{ending}"


@convert_call.register(ttkernel.GetReadPtrOp)
@convert_call.register(ttkernel.GetWritePtrOp)
def _pointer(op: ttkernel.GetReadPtrOp | ttkernel.GetWritePtrOp, to: Conversion) -> None:
    buffer = to.value(op.cb)
    value = to.result(_callee(op, to), [buffer], ADDRESS)
    ending = "read_ptr" if isinstance(op, ttkernel.GetReadPtrOp) else "write_ptr"
    value.name_hint = op.result.name_hint or _with(buffer.name_hint, ending)
    to.set(op.result, value)


@convert_call.register(ttkernel.MyXOp)
@convert_call.register(ttkernel.MyYOp)
def _own_place(op: TTKernelOp, to: Conversion) -> None:
    name = op.name.removeprefix("ttkernel.")
    to.set(op.results[0], to.emit(LiteralOp(f"{name}[noc_index]", i32)).result)


@convert_call.register
def _virtual_x(op: ttkernel.VirtualXOp, to: Conversion) -> None:
    table = to.emit(LiteralOp("worker_logical_col_to_virtual_col", opaque("auto"))).result
    to.set(op.result, to.emit(SubscriptOp(table, to.value(op.logical), i32)).result)


@convert_call.register(ttkernel.MyLogicalXOp)
@convert_call.register(ttkernel.MyLogicalYOp)
def _logical_place(op: TTKernelOp, to: Conversion) -> None:
    axis = op.name[-1]
    value = to.result(f"get_absolute_logical_{axis}", [], i32)
    value.name_hint = op.results[0].name_hint or f"core_{axis}"
    to.set(op.results[0], value)


@convert_call.register
def _read_page(op: ttkernel.NocAsyncReadPageOp, to: Conversion) -> None:
    operands = _operands(op, to)
    to.call(_callee(op, to), operands[:3] if constant_integer(op.offset) == 0 else operands)


@convert_call.register
def _write_page(op: ttkernel.NocAsyncWritePageOp, to: Conversion) -> None:
    operands = _operands(op, to)
    # Before the offset is a size, of which 0 stands for that of the page.
    to.call(
        _callee(op, to),
        operands[:3] if constant_integer(op.offset) == 0 else [*operands[:3], to.number(0, i32), operands[3]],
    )


# --- semaphores: on a core, the word's address is what there is of one


@convert_call.register
def _semaphore(op: ttkernel.GetSemaphoreOp, to: Conversion) -> None:
    number = IntegerAttr(op.index.value.data, i32)
    value = to.result("get_semaphore", [], opaque("const uintptr_t"), arguments=[number])
    value.name_hint = op.result.name_hint or f"semaphore{op.index.value.data}"
    to.set(op.result, value)


@convert_call.register
def _semaphore_address(op: ttkernel.SemaphoreAddressOp, to: Conversion) -> None:
    to.set(op.result, to.value(op.semaphore))


@convert_call.register
def _l1_pointer(op: ttkernel.CastToL1PtrOp, to: Conversion) -> None:
    callee = "reinterpret_cast<volatile tt_l1_ptr uint32_t*>"
    semaphore = to.value(op.semaphore)
    value = to.result(callee, [semaphore], _L1_WORD)
    value.name_hint = op.result.name_hint or _with(semaphore.name_hint, "word")
    to.set(op.result, value)


@convert_call.register
def _semaphore_value(op: ttkernel.SemaphoreValueOp, to: Conversion) -> None:
    value = to.result(f"*{to.profile.local_memory}", [to.value(op.pointer)], ADDRESS, template=["volatile uint32_t"])
    to.set(op.result, value)


# --- the compute engine


def end_broadcast(to: Conversion) -> None:
    """The unpacker keeps what `unary_bcast_init` set up, so it is undone before the next init."""
    if to.broadcast is None or to.broadcast[0] is not to.block:
        return
    _, buffer, kind = to.broadcast
    to.broadcast = None
    if to.profile.has_startup:
        to.call("unary_bcast_uninit", [buffer], template=[kind])


def reconfigure(
    to: Conversion, a: SSAValue | None, b: SSAValue | None = None, out: SSAValue | None = None, *, swapped: bool = False
) -> None:
    """Set the units to the data formats of their buffers, in a thread in which they differ."""
    if not to.mixes_formats:
        return
    if a is not None and b is not None:
        if swapped:
            a, b = b, a
        to.call("reconfig_data_format", [to.value(a), to.value(b)])
    elif a is not None:
        to.call("reconfig_data_format_srca", [to.value(a)])
    if out is not None:
        to.call("pack_reconfig_data_format", [to.value(out)])


@convert_call.register
def _init_sfpu(op: ttkernel.InitSFPUOp, to: Conversion) -> None:
    end_broadcast(to)
    if to.profile.has_startup:
        # The tiles that come from it have an init of their own.
        reconfigure(to, op.icb, out=op.ocb)
    else:
        to.call("init_sfpu", _operands(op, to))


@convert_call.register
def _binary_common(op: ttkernel.BinaryOpInitCommonOp, to: Conversion) -> None:
    end_broadcast(to)
    if to.profile.has_startup:
        reconfigure(to, op.in0, op.in1, op.out)
    else:
        to.call("binary_op_init_common", _operands(op, to))


@convert_call.register
def _copy_init(op: ttkernel.CopyTileInitOp, to: Conversion) -> None:
    end_broadcast(to)
    reconfigure(to, op.cb)
    to.call(_callee(op, to), _operands(op, to))


@convert_call.register(ttkernel.AddTilesInitOp)
@convert_call.register(ttkernel.SubTilesInitOp)
@convert_call.register(ttkernel.MulTilesInitOp)
def _matrix_init(op: TTKernelOp, to: Conversion) -> None:
    end_broadcast(to)
    reconfigure(to, *op.operands)
    to.call(_callee(op, to), _operands(op, to))


@convert_call.register
def _matmul_init(op: ttkernel.MMInitOp, to: Conversion) -> None:
    end_broadcast(to)
    if to.profile.has_startup:
        # The second operand of a product is the first one of the unit.
        reconfigure(to, op.in0, op.in1, op.out, swapped=True)
        to.call("matmul_init", [to.value(op.in0), to.value(op.in1)])
    else:
        to.call("mm_init", _operands(op, to))


@convert_call.register
def _matmul_block_init(op: ttkernel.MMBlockInitOp, to: Conversion) -> None:
    end_broadcast(to)
    operands = _operands(op, to)
    if to.profile.has_startup:
        reconfigure(to, op.in0, op.in1, op.out, swapped=True)
        to.call("matmul_block_init", [*operands[:2], *operands[3:]])
    else:
        to.call("mm_block_init", operands)


@convert_call.register
def _transpose_init(op: ttkernel.TransposeWHInitOp, to: Conversion) -> None:
    end_broadcast(to)
    if to.profile.has_startup:
        reconfigure(to, op.icb, out=op.ocb)
        to.call("transpose_init", [to.value(op.icb)])
    else:
        to.call("transpose_wh_init", _operands(op, to))


def _dims(dims: ArrayAttr[IntegerAttr]) -> tuple[int, ...]:
    return tuple(sorted(each.value.data for each in dims))


def _broadcast_type(dims: ArrayAttr[IntegerAttr]) -> str:
    kinds = {_ALONG_COLUMNS: "COL", _ALONG_ROWS: "ROW"}
    return f"BroadcastType::{kinds.get(_dims(dims), 'SCALAR')}"


@convert_call.register
def _broadcast_init(op: ttkernel.UnaryBcastInitOp, to: Conversion) -> None:
    end_broadcast(to)
    kind = _broadcast_type(op.dims)
    operands = _operands(op, to)
    if to.profile.has_startup:
        reconfigure(to, op.icb, out=op.ocb)
        operands = operands[:1]
    to.call("unary_bcast_init", operands, template=[kind])
    to.broadcast = to.block, operands[0], kind


@convert_call.register
def _broadcast(op: ttkernel.UnaryBcastOp, to: Conversion) -> None:
    to.call("unary_bcast", _operands(op, to), template=[_broadcast_type(op.dims)])


def _reduction(kind: StringAttr, dims: ArrayAttr[IntegerAttr]) -> list[str]:
    # A sum along columns is of what is in a row.
    names = {_ALONG_COLUMNS: "ROW", _ALONG_ROWS: "COL"}
    return [f"PoolType::{kind.data.upper()}", f"ReduceDim::REDUCE_{names.get(_dims(dims), 'SCALAR')}"]


@convert_call.register
def _reduce_init(op: ttkernel.ReduceInitOp, to: Conversion) -> None:
    end_broadcast(to)
    template = _reduction(op.kind, op.dims)
    along_row = template[1] == "ReduceDim::REDUCE_ROW" and template[0] == "PoolType::SUM"
    reconfigure(to, op.icb, op.scaler, op.ocb, swapped=along_row)
    to.call("reduce_init", _operands(op, to), template=template)
    to.reduced = to.value(op.icb)


@convert_call.register
def _reduce_tile(op: ttkernel.ReduceTileOp, to: Conversion) -> None:
    to.call("reduce_tile", _operands(op, to), template=_reduction(op.kind, op.dims))


@convert_call.register
def _reduce_end(op: ttkernel.ReduceUninitOp, to: Conversion) -> None:
    with_buffer = to.profile.has_startup and to.reduced is not None
    to.call("reduce_uninit", [to.reduced] if with_buffer and to.reduced is not None else [])


@convert_call.register
def _commit(op: ttkernel.TileRegsCommitOp, to: Conversion) -> None:
    end_broadcast(to)
    to.call("tile_regs_commit")


@convert_call.register
def _fill(op: ttkernel.FillTileOp, to: Conversion) -> None:
    value = op.value
    assert isinstance(value, FloatAttr)
    number: Attribute = FloatAttr(value.value.data, f32)
    to.call("fill_tile", _operands(op, to), arguments=[IntegerAttr.from_index_int_value(0), number])


@convert_call.register
def _fill_int(op: ttkernel.FillTileIntOp, to: Conversion) -> None:
    number: Attribute = IntegerAttr(op.value.value.data & 0xFFFFFFFF, ADDRESS)
    arguments = [IntegerAttr.from_index_int_value(0), number]
    to.call(_callee(op, to), _operands(op, to), template=[_format(op.value.type)], arguments=arguments)


def _format(type_: Attribute) -> str:
    return f"DataFormat::{DTYPES[format_of(type_)].data_format}"


@convert_call.register(ttkernel.AddIntTileOp)
@convert_call.register(ttkernel.SubIntTileOp)
@convert_call.register(ttkernel.MulIntTileOp)
@convert_call.register(ttkernel.MulIntTileInitOp)
def _integers(op: ttkernel.IntTileOp | ttkernel.IntTileInitOp, to: Conversion) -> None:
    to.call(_callee(op, to), _operands(op, to), template=[_format(op.format)])


@convert_call.register(ttkernel.AddIntTileInitOp)
@convert_call.register(ttkernel.SubIntTileInitOp)
def _integers_init(op: ttkernel.IntTileInitOp, to: Conversion) -> None:
    to.call(_callee(op, to))


@convert_call.register(ttkernel.MaxIntTileInitOp)
@convert_call.register(ttkernel.MaxIntTileOp)
@convert_call.register(ttkernel.MinIntTileInitOp)
@convert_call.register(ttkernel.MinIntTileOp)
def _extreme(op: ttkernel.IntTileOp | ttkernel.IntTileInitOp, to: Conversion) -> None:
    kind = "int32" if format_of(op.format) == "i32" else "uint32"
    # `max_int_tile_init` is `binary_max_int32_tile_init`.
    to.call(f"binary_{_callee(op, to).replace('int', kind, 1)}", _operands(op, to))


@convert_call.register(ttkernel.TypecastTileInitOp)
@convert_call.register(ttkernel.TypecastTileOp)
def _typecast(op: ttkernel.TypecastTileInitOp | ttkernel.TypecastTileOp, to: Conversion) -> None:
    formats = [f"uint32_t({_format(each)})" for each in (op.source, op.target)]
    to.call(_callee(op, to), _operands(op, to), template=formats)


@convert_call.register
def _copy_dst(op: ttkernel.CopyDestValuesOp, to: Conversion) -> None:
    source, target = _operands(op, to)
    if to.profile.has_startup:
        kind = f"DataFormat::{_register_format(to)}" if op.format is None else _format(op.format)
        to.call("copy_dest_values", [source, target], template=[kind])
    else:
        to.call("copy_dest_values", [target, source])


@convert_call.register
def _pack(op: ttkernel.PackTileOp, to: Conversion) -> None:
    if to.packs_formats:
        reconfigure(to, None, out=op.cb)
    # Without the argument the packer goes on to the next tile, whatever the index.
    to.call("pack_tile", _operands(op, to), template=["true"])


@convert_call.register
def _pack_block(op: ttkernel.PackTileBlockOp, to: Conversion) -> None:
    if to.packs_formats:
        reconfigure(to, None, out=op.cb)
    to.call(_callee(op, to), _operands(op, to))


@convert_call.register
def _tilize_init(op: ttkernel.TilizeInitOp, to: Conversion) -> None:
    end_broadcast(to)
    to.call("tilize_init", _operands(op, to))


@convert_call.register(ttkernel.PackUntilizeDestInitOp)
@convert_call.register(ttkernel.PackUntilizeDestOp)
def _untilize(op: ttkernel.UntilizeOp, to: Conversion) -> None:
    buffer, *part = _operands(op, to)
    # Between the two is the number of rows of tiles.
    rows = [to.number(1, i32), *part] if part else []
    sizes = [str(each.value.data) for each in (op.width, op.full_width)]
    to.call(_callee(op, to), [buffer, *rows], template=sizes)


@convert_call.register
def _vector_init(op: ttkernel.VectorInitOp, to: Conversion) -> None:
    to.call(_callee(op, to), template=op.FUNCTION.template)


@convert_call.register
def _vector(op: ttkernel.VectorOp, to: Conversion) -> None:
    numbers = () if op.parameters is None else tuple(float(each.value.data) for each in op.parameters)
    bits = [_number(each, op.FUNCTION.integers) for each in op.FUNCTION.arguments(numbers)]
    arguments = [IntegerAttr.from_index_int_value(0), *bits] if bits else None
    to.call(_callee(op, to), _operands(op, to), template=op.FUNCTION.template, arguments=arguments)


def _number(number: int, is_integer: bool) -> EmitC_OpaqueAttr:
    """An argument: an integer, or the bits of an f32."""
    return EmitC_OpaqueAttr(StringAttr(f"{number}" if is_integer else f"0x{number:08x}u"))


@convert_call.register
def _where(op: ttkernel.WhereTileOp, to: Conversion) -> None:
    to.call("where_tile", _operands(op, to), template=[f"DataFormat::{_register_format(to)}"])


def _register_format(to: Conversion) -> str:
    return "Float32" if to.has_wide_registers else "Float16_b"


# --- text for the host


def _dprint(to: Conversion, thread: StringAttr | None, otherwise: str, text: str, values: Sequence[SSAValue]) -> None:
    """Write a text; the processors of a compute thread run the same code, of which one writes."""
    processor = (thread.data if thread is not None else otherwise).upper()
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    arguments = [EmitC_OpaqueAttr(StringAttr(f'"{escaped}\\n"'))]
    arguments += [IntegerAttr.from_index_int_value(at) for at in range(len(values))]
    to.call(f"DPRINT_{processor}" if to.is_compute else "DPRINT", values, arguments=arguments)


@convert_call.register
def _print(op: ttkernel.DPrintOp, to: Conversion) -> None:
    _dprint(to, op.thread, "math", op.format.data, [to.value(each) for each in op.values])


def _number_of(cb: SSAValue) -> int:
    """The number of a circular buffer, which is its place among the compile-time arguments."""
    assert isinstance(cb.owner, ttkernel.GetCompileTimeArgValOp), "ttl-lower-synchronization makes them so"
    return cb.owner.index.value.data


@convert_call.register
def _print_buffer(op: ttkernel.DPrintBufferOp, to: Conversion) -> None:
    type_ = op.cb.type
    assert isinstance(type_, ttkernel.CBType)
    name = to.value(op.cb).name_hint or "circular buffer"
    # Its pointers are valid in a step of the protocol only.
    _dprint(to, op.thread, "pack", f"{name}: {type_.num_pages} pages, number {_number_of(op.cb)}", [])


@convert_call.register
def _print_tiles(op: ttkernel.DPrintTilesOp, to: Conversion) -> None:
    is_written = op.written is not None
    for tile in range(op.tiles.value.data):
        place = ["SliceRange::hw0_32_8()"]
        if not to.is_compute:
            place += ["TSLICE_OUTPUT_CB", "TSLICE_WR_PTR"] if is_written else ["TSLICE_INPUT_CB", "TSLICE_RD_PTR"]
        number = f"get_compile_time_arg_val({_number_of(op.cb)})"
        arguments = [EmitC_OpaqueAttr(StringAttr(each)) for each in (number, str(tile), *place)]
        sample = to.result("TSLICE", [], opaque("const auto"), arguments=arguments)
        _dprint(to, op.thread, "pack" if is_written else "unpack", "{}", [sample])
