"""Lowering of the MMA functions of `tlx`: wgmma on Hopper, tcgen05 on Blackwell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import tlx, tlx as dialect, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of
from tlx_xdsl.dialects.tt import InputPrecision, ScaleDotElemType
from tlx_xdsl.language.core import dtype, float32, int1, int8, int32
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, TensorMemoryLayout, TensorMemoryScalesLayout
from tlx_xdsl.layouts.shared import padded_fp4_layout
from tlx_xdsl.targets import Feature

from .. import semantic
from ..calls import HANDLERS, Call, lowers
from ..types import ir_type
from ..values import BufferedTensor, Constexpr, Tensor, Value
from .matrix import HOPPER_IMPRECISE_K
from .tlx_common import (
    TMEM,
    barriers,
    in_tensor_memory,
    is_blackwell,
    is_even_cta,
    one_barrier,
    one_buffer,
    shared_buffer,
    tensor_memory_buffer,
)

SCALED_ROWS = 128
"""Rows of the accumulator of a scaled MMA on one CTA (PTX ISA, "tcgen05.mma", block scaling)."""


@lowers("tlx.async_dot")
def _async_dot(call: Call) -> Value | None:
    if is_blackwell(call):
        _tcgen05(call)
        return None
    call.require(Feature.WGMMA, Feature.TCGEN05)
    return _wgmma(call)


# --- Hopper ---------------------------------------------------------------------------------------------------------


def _wgmma(call: Call) -> Value:
    asked = {
        "pred": call.given("pred"),
        "mBarriers": bool(call.items("mBarriers", "a list of mbarriers")),
        "two_ctas": call.flag("two_ctas"),
        "force_async": call.flag("force_async"),
    }
    for parameter, given in asked.items():
        if given:
            call.require(Feature.TCGEN05, what=f"with '{parameter}'")
    a, b = call.args["A"], shared_buffer(call, "B")
    if not isinstance(a, Tensor):
        a = shared_buffer(call, "A")
    shape = _mma_shape(call, a, b)
    accumulator = _accumulator(call, a.dtype, shape)
    assert isinstance(accumulator.dtype, dtype)
    use_acc = call.scalar("use_acc", int1) if call.given("use_acc") else None
    if use_acc is None and not call.given("acc"):
        use_acc = call.as_scalar("use_acc", Constexpr(False), int1)
    precisions = {"tf32": InputPrecision.TF32, "tf32x3": InputPrecision.TF32x3, "ieee": InputPrecision.IEEE}
    precision = call.choice("input_precision", precisions) if call.given("input_precision") else InputPrecision.TF32
    # The tensor cores sum products of 8-bit floats with fewer bits than f32 has: the whole dot in one sum, as in
    # `tl.dot`, where Triton would otherwise refuse the f32 accumulator.
    imprecise_k = HOPPER_IMPRECISE_K if b.dtype.is_fp8() and accumulator.dtype == float32 else None
    operands = (a, b, accumulator, use_acc)
    properties = {"inputPrecision": precision, "isAsync": True, "maxNumImpreciseAcc": imprecise_k}
    return call.emit_tensor(ttng.WarpGroupDotOp, accumulator.dtype, shape, *operands, **properties)


def _mma_shape(call: Call, a: Tensor | BufferedTensor, b: BufferedTensor) -> tuple[int, int]:
    """M and N of A @ B."""
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        call.fail(None, f"expected A of M x K and B of K x N, found {a.describe()} and {b.describe()}")
    both_8_bits = all(isinstance(x.dtype, dtype) and x.dtype.is_fp8() for x in (a, b))
    if a.dtype != b.dtype and not both_8_bits:
        call.fail(None, f"expected A and B of one type, found {a.describe()} and {b.describe()}")
    return a.shape[0], b.shape[1]


def _accumulator(call: Call, operand: Any, shape: tuple[int, int]) -> Tensor:
    element = int32 if operand == int8 else call.dtype("out_dtype")
    if not call.given("acc"):
        return semantic.full(call.builder, shape, Constexpr(0), element)
    accumulator = call.of("acc", Tensor, "a block")
    if (accumulator.dtype, accumulator.shape) != (element, shape):
        call.fail(
            "acc",
            f"'acc' must be a block of type {element}[{shape[0]}, {shape[1]}], found {accumulator.describe()}",
        )
    return accumulator


@lowers("tlx.async_dot_wait")
def _async_dot_wait(call: Call) -> Value:
    call.require(Feature.WGMMA)
    pendings = call.integer("pendings", minimum=0)
    value = call.of("inp", Tensor, "the result of an async_dot")
    if not value.shape:
        call.expected("inp", "the result of an async_dot")
    return Tensor(
        call.emit(ttng.WarpGroupDotWaitOp, [value], results=[[value.ssa.type]], pendings=pendings).results[0],
        value.dtype,
        value.shape,
    )


# --- Blackwell ------------------------------------------------------------------------------------------------------


def _tcgen05(call: Call) -> None:
    if isinstance(call.args["A"], Tensor):
        notes = ("tcgen05 takes A from a buffer in shared or tensor memory: store the block to one first",)
        call.require(Feature.WGMMA, what="of a block", notes=notes)
    if not call.given("acc") or isinstance(call.args["acc"], Tensor):
        notes = ("tcgen05 accumulates in tensor memory: give it a buffer of tlx.storage_kind.tmem as 'acc'",)
        call.require(Feature.WGMMA, what="with a block as 'acc'" if call.given("acc") else "without 'acc'", notes=notes)
    a, b = one_buffer(call, "A"), shared_buffer(call, "B")
    accumulator = tensor_memory_buffer(call, "acc")
    rows, columns = _mma_shape(call, a, b)
    halves = ""
    if call.flag("two_ctas"):
        columns, halves = 2 * columns, ", because each CTA of a pair has half of B's columns"
    if accumulator.shape != (rows, columns):
        call.fail("acc", f"'acc' must have the shape [{rows}, {columns}]{halves}, found {accumulator.describe()}")
    operands = [a.ssa, b.ssa, _accumulator_for(call, accumulator), None]
    use, pred, arrivals, properties = _issue(call)
    call.emit(ttng.TCGen5MMAOp, *operands, use, pred, arrivals, _always(call, arrivals), results=[None], **properties)


def _issue(call: Call) -> tuple[Tensor, Tensor, Sequence[SSAValue], dict[str, Attribute]]:
    """Say whether to accumulate, whether to issue at all, the barriers to arrive at, and the attributes."""
    use = call.predicate("use_acc")
    pred = call.predicate()
    arrivals = [barrier.ssa for barrier in barriers(call, "mBarriers")]
    properties: dict[str, Attribute] = {}
    if arrivals or call.flag("force_async"):
        properties["is_async"] = UnitAttr()
    if call.flag("two_ctas"):
        properties["two_ctas"] = UnitAttr()
    return use, pred, arrivals, properties


def _always(call: Call, arrivals: Sequence[SSAValue]) -> list[SSAValue]:
    """A predicate for each barrier: the arrival depends on nothing but the MMA itself."""
    return [call.as_scalar("mBarriers", Constexpr(True), int1).ssa for _ in arrivals]


def _accumulator_for(call: Call, accumulator: BufferedTensor) -> SSAValue:
    """The accumulator in the layout that an MMA of one CTA, or of a pair of them, requires.

    An allocation has no mark of a pair that will work on it: `tlx.require_layout` adds the layout for pairs.
    """
    type_ = ttg.memdesc_type(accumulator.ssa.type)
    layout = None if isinstance(type_.encoding, tlx.DummyTMEMLayoutAttr) else layout_of(type_.encoding)
    bits = accumulator.dtype.primitive_bitwidth
    if not isinstance(layout, TensorMemoryLayout):
        call.fail("acc", f"'acc' must have the layout of an accumulator, found {accumulator.describe()} for scales")
    # Accumulators are never packed (PTX ISA, "tcgen05.mma", layout of D).
    needed = replace(layout, two_ctas=call.flag("two_ctas"), col_stride=32 // bits)
    return accumulator.ssa if needed == layout else _required(call, accumulator, layout_attr(needed))


def _required(call: Call, buffer: BufferedTensor, encoding: Attribute) -> SSAValue:
    type_ = ttg.memdesc_type(buffer.ssa.type).with_encoding(encoding)
    return call.emit(dialect.RequireLayoutOp, buffer, results=[type_]).result


@lowers("tlx.dot")
@lowers("tlx.dot_scaled")
def _of_registers(call: Call) -> Value | None:
    if call.given("tiles_per_warp"):
        call.fail("tiles_per_warp", "'tiles_per_warp' exists for AMD GPUs only")
    return HANDLERS[call.name.replace("tlx.", "tl.")](call)


FORMATS = {kind.keyword: kind for kind in (ScaleDotElemType.E2M1, ScaleDotElemType.E4M3, ScaleDotElemType.E5M2)}


@lowers("tlx.async_dot_scaled")
def _async_dot_scaled(call: Call) -> None:
    call.require(Feature.TCGEN05)
    a, b = one_buffer(call, "A"), shared_buffer(call, "B")
    accumulator = tensor_memory_buffer(call, "acc")
    if call.dtype("out_dtype") != float32 or accumulator.dtype != float32:
        call.fail("acc", f"a scaled MMA accumulates in fp32, found {accumulator.describe()}")
    if len(accumulator.shape) != 2 or accumulator.shape[0] != SCALED_ROWS:
        call.fail("acc", f"a scaled MMA has {SCALED_ROWS} rows, found {accumulator.describe()}")
    formats = [call.choice(name, FORMATS) for name in ("A_format", "B_format")]
    mixed = formats[0] != formats[1]
    operands = [
        _padded(call, operand) if mixed and kind is ScaleDotElemType.E2M1 else operand.ssa
        for operand, kind in zip((a, b), formats, strict=True)
    ]
    rows = (accumulator.shape[0], accumulator.shape[1])
    scales = [_scales(call, name, count) for name, count in zip(("A_scale", "B_scale"), rows, strict=True)]
    target = _accumulator_for(call, accumulator)
    use, pred, arrivals, properties = _issue(call)
    properties |= {"a_type": formats[0].attr, "b_type": formats[1].attr}
    call.emit(
        ttng.TCGen5MMAScaledOp,
        *operands,
        target,
        None,
        *scales,
        use,
        pred,
        arrivals,
        _always(call, arrivals),
        results=[None],
        **properties,
    )


def _scales(call: Call, parameter: str, rows: int) -> SSAValue:
    """The scales of `rows` rows of an operand, in tensor memory, where the tensor cores read them.

    Those in shared memory are copied there: a copy and an MMA that the same task issues run in that order.
    """
    buffer = one_buffer(call, parameter)
    if in_tensor_memory(buffer):
        return buffer.ssa
    columns, rest = divmod(prod(buffer.shape), rows)
    if rest or buffer.dtype.primitive_bitwidth != 8:
        call.fail(
            parameter, f"'{parameter}' must hold a byte for every 32 elements of {rows} rows, found {buffer.describe()}"
        )
    scales = ttg.MemDescType.get(
        (rows, columns), ir_type(buffer.dtype), layout_attr(TensorMemoryScalesLayout()), TMEM, mutable=True
    )
    room = call.builder.insert_at_entry(ttng.TMEMAllocOp(operands=[None], result_types=[scales, None]))
    call.emit(ttng.TMEMCopyOp, buffer, room.result)
    return room.result


def _padded(call: Call, buffer: BufferedTensor) -> SSAValue:
    """A buffer of fp4 pairs in the layout that an MMA with 8-bit floats requires, which gives a pair two bytes."""
    if in_tensor_memory(buffer):
        return buffer.ssa
    layout = layout_of(ttg.memdesc_type(buffer.ssa.type).encoding)
    if not isinstance(layout, NvmmaSharedLayout) or layout.fp4_padded:
        return buffer.ssa
    return _required(call, buffer, layout_attr(padded_fp4_layout(buffer.shape, transposed=layout.transposed)))


@lowers("tlx.tcgen05_commit")
def _tcgen05_commit(call: Call) -> None:
    call.require(Feature.TCGEN05)
    barrier = one_barrier(call, "mBarrier")
    pred = is_even_cta(call).ssa if call.flag("two_ctas") else None
    call.emit(ttng.TCGen5CommitOp, barrier, pred, [])
