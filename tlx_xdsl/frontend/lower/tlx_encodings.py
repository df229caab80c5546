"""Conversion of the layout objects of `tlx` to layout attributes."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NoReturn

from xdsl.dialects.builtin import BoolAttr, TensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.base import layout_attr
from tlx_xdsl.dialects.tlx import DummyRegisterLayoutAttr, DummyTMEMLayoutAttr, UserLayoutAttr
from tlx_xdsl.dialects.ttg import shape_attr
from tlx_xdsl.errors import InputError
from tlx_xdsl.language import tlx
from tlx_xdsl.language.core import dtype
from tlx_xdsl.layouts.conversion.shared import buffer_rank, shared_to_linear
from tlx_xdsl.layouts.conversion.tiling import OFFSET
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    Ints,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)
from tlx_xdsl.layouts.linear_layout import log2
from tlx_xdsl.layouts.shared import default_nvmma_layout, default_shared_layout, padded_fp4_layout

from ..calls import Call
from ..types import ir_type

WARP_BITS = 5
"""A warp has 2**5 threads."""
MAX_BLOCK_N = 256
"""Most columns of an accumulator (PTX ISA, "tcgen05.mma", matrix shapes): wider buffers are several blocks."""


def python_layout(call: Call, parameter: str) -> tlx.layout_encoding | None:
    """The layout object that is the argument; None when there is none."""
    if not call.given(parameter):
        return None
    return call.known(parameter, tlx.layout_encoding, "a layout")


def chosen(call: Call, parameter: str, encoding: Attribute) -> Attribute:
    """The layout of an allocation, marked as the user's when the argument names it: no pass may replace that one."""
    return UserLayoutAttr.new([encoding]) if call.given(parameter) else encoding


def shared_encoding(call: Call, parameter: str, shape: Ints, element: dtype) -> Attribute:
    """The layout of a buffer in shared memory: the one that the user names, or what TMA and the tensor cores like."""
    asked = python_layout(call, parameter)
    bits = element.primitive_bitwidth
    if asked is None:
        return layout_attr(default_shared_layout(shape, bits))
    layout = _shared(call, parameter, asked, shape, bits)
    rank = buffer_rank(layout)
    if rank != len(shape):
        call.fail(parameter, f"'{parameter}' is for {rank} dimensions, the buffer has {len(shape)}")
    return layout_attr(layout)


def _shared(call: Call, parameter: str, asked: tlx.layout_encoding, shape: Ints, bits: int) -> SharedLayout:
    match asked:
        case tlx.swizzled_shared_layout_encoding():
            return SwizzledSharedLayout(asked.vectorSize, asked.perPhase, asked.maxPhase, tuple(asked.order))
        case tlx.padded_shared_layout_encoding():
            bases = _tuples(asked.offset_bases), _tuples(asked.block_bases)
            return PaddedSharedLayout(tuple(asked.intervals), tuple(asked.paddings), *bases)
        case tlx.shared_linear_layout_encoding(atom=tlx.nv_mma_shared_layout_encoding() as atom):
            return _tiled(call, parameter, asked, _nvmma(call, parameter, atom, bits), shape)
        case tlx.shared_linear_layout_encoding():
            return SharedLinearLayout(
                _tuples(asked.offset_bases), _tuples(asked.block_bases), alignment=asked.alignment
            )
        case tlx.nv_mma_shared_layout_encoding():
            return _nvmma(call, parameter, asked, bits)
        case tlx.swizzled_layout():
            return _swizzled(call, parameter, asked, shape)
        case _:
            return _no_layout(call, parameter, "shared memory", asked)


def _tuples(bases: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, bases))


def _no_layout(call: Call, parameter: str, where: str, asked: tlx.layout_encoding) -> NoReturn:
    call.fail(parameter, f"'{parameter}' must be a layout of {where}, found {asked!r}")


def _nvmma(call: Call, parameter: str, asked: tlx.nv_mma_shared_layout_encoding, bits: int) -> NvmmaSharedLayout:
    if asked.elemType.primitive_bitwidth != bits:
        call.fail(parameter, f"'{parameter}' is for elements of type {asked.elemType}, the buffer's have {bits} bits")
    rank, order = len(asked.shape), tuple(asked.order)
    rows_first = tuple(reversed(range(rank)))
    if order not in (rows_first, (*rows_first[1::-1], *rows_first[2:])):
        call.fail(parameter, f"the order {list(order)} must name the last two dimensions first")
    transposed = order != rows_first
    if asked.fp4Padded:
        default = padded_fp4_layout(tuple(asked.shape), transposed=transposed)
    else:
        default = default_nvmma_layout(tuple(asked.shape), bits, transposed=transposed)
    return default if asked.swizzled else replace(default, swizzling_byte_width=0)


def _tiled(
    call: Call, parameter: str, asked: tlx.shared_linear_layout_encoding, atom: NvmmaSharedLayout, shape: Ints
) -> SharedLinearLayout:
    """Tiles in the layout `atom` in a row, as many as `shape` has: along the fastest dimension of the atom first."""
    assert asked.atom is not None
    tile = tuple(asked.atom.shape)
    if shape != tuple(asked.tile_shape):
        call.fail(parameter, f"'{parameter}' is for buffers of {list(asked.tile_shape)}, the buffer has {list(shape)}")
    try:
        bases = shared_to_linear(atom, tile).bases_of(OFFSET)
    except InputError as error:
        call.fail(parameter, str(error))
    more = [
        tuple(tile[dim] << bit if each == dim else 0 for each in range(len(shape)))
        for dim in asked.atom.order
        for bit in range(log2(shape[dim] // tile[dim]))
    ]
    return SharedLinearLayout((*bases, *more), (), alignment=asked.alignment)


def _swizzled(call: Call, parameter: str, asked: tlx.swizzled_layout, shape: Ints) -> SwizzledSharedLayout:
    order = tuple(asked.order or reversed(range(len(shape))))
    if len(order) != len(shape):
        call.fail(parameter, f"'{parameter}' is for {len(order)} dimensions, the buffer has {len(shape)}")
    row = shape[order[0]]
    if not asked.bits:
        return SwizzledSharedLayout(1 << asked.base, 1, 1, order)
    if (1 << (asked.base + asked.shift)) < row:
        call.fail(
            parameter,
            f"Swizzle<{asked.bits}, {asked.base}, {asked.shift}> must take its bits from beyond a row: "
            f"2**{asked.base + asked.shift} is less than its {row} elements",
        )
    return SwizzledSharedLayout(1 << asked.base, (1 << (asked.base + asked.shift)) // row, 1 << asked.bits, order)


# --- tensor memory --------------------------------------------------------------------------------------------------


def tmem_encoding(call: Call, parameter: str, shape: Ints, element: dtype) -> Attribute:
    """The layout of a buffer in tensor memory: the one that the user names, or packed blocks.

    Elements of 8 bits that are no floats may be the scales of a block-scaled MMA, or an operand: what uses the
    buffer says later which layout it gets.
    """
    asked = python_layout(call, parameter)
    if len(shape) < 2:
        call.fail("shape", f"TMEM allocations must be at least 2D, got rank {len(shape)}")
    if asked is None:
        return _default_tmem(call, shape, element)
    if isinstance(asked, tlx.DummyTMEMLayoutEncoding):
        return DummyTMEMLayoutAttr()
    if isinstance(asked, tlx.tensor_memory_scales_layout_encoding):
        return layout_attr(TensorMemoryScalesLayout())
    if not isinstance(asked, tlx.tensor_memory_layout_encoding):
        _no_layout(call, parameter, "tensor memory", asked)
    two_ctas = asked.ctaMode is not tlx.TMemCTAMode.DEFAULT
    return layout_attr(TensorMemoryLayout(asked.blockM, asked.blockN, asked.colStride, (), two_ctas))


def _default_tmem(call: Call, shape: Ints, element: dtype) -> Attribute:
    if element.primitive_bitwidth < 16 and not element.is_floating():
        return DummyTMEMLayoutAttr()
    rows, columns = shape[-2:]
    if rows < 64:
        call.fail("shape", f"a buffer in tensor memory has 64 rows or a multiple of 128, found {list(shape)}")
    return layout_attr(TensorMemoryLayout(min(rows, 128), min(columns, MAX_BLOCK_N), 1))


# --- registers ------------------------------------------------------------------------------------------------------


def register_type(call: Call, asked: tlx.layout_encoding, shape: Ints, element: dtype) -> TensorType:
    """The type of a block of `shape` elements in the layout that the user names."""
    if isinstance(asked, tlx.DummyRegisterLayoutEncoding):
        encoding: Attribute = dummy_register(shape, element, tmem_compatible=asked.tmem_compatible)
    else:
        try:
            encoding = layout_attr(_registers(call, asked, shape, element.primitive_bitwidth))
        except VerifyException as error:
            call.fail("layout", str(error), error)
    return TensorType(ir_type(element), shape, encoding)


def _registers(call: Call, asked: tlx.layout_encoding, shape: Ints, bits: int) -> DistributedLayout:
    """The layout that the user names, for a block of elements of so many bits."""
    match asked:
        case tlx.layout():
            return _cute(call, asked, shape)
        case tlx.blocked_layout_encoding():
            threads, warps = tuple(asked.threads_per_warp), tuple(asked.warps_per_cta)
            return BlockedLayout(tuple(asked.size_per_thread), threads, warps, tuple(asked.order))
        case tlx.distributed_linear_layout_encoding():
            bases = asked.reg_bases, asked.lane_bases, asked.warp_bases, asked.block_bases
            return DistributedLinearLayout(*map(_tuples, bases))
        case tlx.nv_mma_layout():
            version = 3 if len(asked.instr_shape) == 3 else 2
            return NvidiaMmaLayout(version, 0, tuple(asked.warps_per_cta), (), tuple(asked.instr_shape))
        case tlx.slice_layout_encoding():
            return SliceLayout(asked.dim, _registers(call, asked.parent, shape, bits))
        case tlx.dot_operand_layout_encoding():
            parent = _registers(call, asked.parent, shape, bits)
            natural = max(1, 32 // bits) if isinstance(parent, NvidiaMmaLayout) else 0
            width = natural if asked.k_width is None else asked.k_width
            return DotOperandLayout(asked.operand_index, parent, width)
        case _:
            return _no_layout(call, "layout", "registers", asked)


def dummy_register(shape: Ints, element: dtype, *, tmem_compatible: bool) -> DummyRegisterLayoutAttr:
    """The placeholder of a register layout until the pass that knows the warps chooses it."""
    return DummyRegisterLayoutAttr(shape_attr(shape), ir_type(element), BoolAttr.from_bool(tmem_compatible))


def _cute(call: Call, asked: tlx.layout, shape: Ints) -> DistributedLinearLayout:
    """A linear layout: each bit of the thread's or value's number moves by a stride through the row-major block."""
    threads, values = (_steps(modes) for modes in (asked.threads, asked.values))
    warps = call.visitor.unit.num_warps
    if len(threads) != WARP_BITS + warps.bit_length() - 1:
        call.fail("layout", f"the layout is for {1 << len(threads)} threads, this code is run by {warps} warps of 32")
    steps = (*threads, *values)
    reach, last = sum(steps), prod(shape)
    if sum(step.bit_count() for step in steps) != reach.bit_count():
        # A linear layout combines steps by exclusive or, CuTe adds: they agree where nothing carries.
        call.fail("layout", f"the strides of {asked!r} carry into each other, which no layout of Triton can express")
    if reach >= last:
        call.fail("layout", f"the layout reaches element {reach}, the block has {last} elements")
    if (step := next((step for step in steps if step.bit_count() > 1), None)) is not None:
        # Such a step takes the bits of several, so no thread holds the elements of each of those.
        call.fail("layout", f"the stride {step} is no power of two: a layout of Triton would leave elements out")
    register, lane, warp = (
        tuple(_coordinates(step, shape) for step in steps)
        for steps in (values, threads[:WARP_BITS], threads[WARP_BITS:])
    )
    return DistributedLinearLayout(register, lane, warp, ())


def _steps(modes: tuple[tuple[int, int], ...]) -> list[int]:
    """The stride of each bit."""
    return [stride << bit for size, stride in modes for bit in range(size.bit_length() - 1)]


def _coordinates(offset: int, shape: Ints) -> Ints:
    """The coordinates of element `offset` of a row-major block."""
    result: list[int] = []
    for size in reversed(shape):
        offset, coordinate = divmod(offset, size)
        result.append(coordinate)
    return tuple(reversed(result))
