"""Layouts that operations require of their buffers: tensor cores, TMA, copies to tensor memory.

Loads and stores by threads, gathers and scatters take any layout, and are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.base import TMA, Kind, Space, accesses_of, bare, chosen_layout, effects_of, layout_attr
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.layouts.encodings import (
    Layout,
    NvmmaSharedLayout,
    SharedLinearLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)
from tlx_xdsl.layouts.shared import default_nvmma_layout, padded_fp4_layout, scale_blocks_layout

from .views import as_tile

MAX_BLOCK_N = 256
"""Most columns of one block of an accumulator (PTX ISA, "tcgen05.mma", matrix shapes)."""
MAX_BLOCK_M = 128
"""Rows of tensor memory."""
TRANSPOSABLE_BITS = 16
"""wgmma reads operands whose rows do not run along K only if their elements have 16 bits (PTX ISA, "wgmma", tnspA)."""


@dataclass(frozen=True)
class Need:
    """The requirement of an operation on the layout of one of its buffers."""

    op: Operation
    buffer: SSAValue
    """The operand."""
    what: str
    """The operand, and the layouts that will do, for messages."""
    accepts: Callable[[Layout], bool]
    prefers: Callable[[MemDescType], Layout]
    """The layout to ask for when the buffer's will not do; for a placeholder, the one that it stands for."""

    def is_met_by(self, encoding: Attribute) -> bool:
        """True if a buffer with this layout will do; a placeholder will not."""
        layout = chosen_layout(bare(encoding))
        return layout is not None and self.accepts(layout)

    @property
    def wanted(self) -> Attribute:
        """The layout to ask for; when the user chose one, the same in other words if that will do."""
        type_ = memdesc_type(self.buffer.type)
        same = self.in_other_words(type_.encoding) if isinstance(type_.encoding, tlx.UserLayoutAttr) else None
        return layout_attr(self.prefers(type_)) if same is None else same

    def in_other_words(self, encoding: Attribute) -> Attribute | None:
        """The layout that will do and puts elements where `encoding` does; None when there is none."""
        same = as_tile(encoding, memdesc_type(self.buffer.type))
        return same if same is not None and self.is_met_by(same) else None


def needs_of(op: Operation) -> Iterator[Need]:
    """The requirements of `op` on the layouts of its buffers."""
    match op:
        case ttng.WarpGroupDotOp():
            yield from _wgmma(op)
        case ttng.TCGen5MMAOp():
            yield from _tcgen05(op)
        case ttng.TCGen5MMAScaledOp():
            yield from _tcgen05_scaled(op)
        case ttng.TMEMCopyOp():
            yield from _tmem_copy(op)
        case _ if effects_of(op).by is TMA:
            copied = [access for access in accesses_of(op) or () if access.kind & (Kind.READ | Kind.WRITE)]
            descriptor = next((each.value for each in copied if each.space is Space.GLOBAL), None)
            yield from (_tma(op, descriptor, each.value) for each in copied if isinstance(each.value.type, MemDescType))
        case _:
            pass


# --- shared memory --------------------------------------------------------------------------------------------------


def _wgmma(op: ttng.WarpGroupDotOp) -> Iterator[Need]:
    for name, operand, along_rows in (("A", op.a, True), ("B", op.b, False)):
        if not isinstance(operand.type, MemDescType):
            continue
        # K runs along the rows of A and along the columns of B.
        transposed = None if operand.type.element_bits == TRANSPOSABLE_BITS else not along_rows
        yield _tile(op, operand, f"operand {name} of a wgmma", transposed)


def _tile(op: Operation, operand: SSAValue, name: str, transposed: bool | None) -> Need:
    """A tile of the tensor cores, which must be `transposed` or not, or either where that is None."""
    run = "" if transposed is None else " whose rows run along K"

    def accepts(layout: Layout) -> bool:
        return isinstance(layout, NvmmaSharedLayout) and transposed in (None, layout.transposed)

    def prefers(type_: MemDescType) -> Layout:
        return default_nvmma_layout(type_.shape, type_.element_bits, transposed=bool(transposed))

    return Need(op, operand, f"{name} needs an nvmma_shared layout{run}", accepts, prefers)


def _tma(op: Operation, descriptor: SSAValue | None, buffer: SSAValue) -> Need:
    type_ = None if descriptor is None else descriptor.type
    asked = chosen_layout(type_.encoding) if isinstance(type_, tt.TensorDescType) else None

    def accepts(layout: Layout) -> bool:
        if asked is not None:
            return layout == asked
        return isinstance(layout, NvmmaSharedLayout) and not layout.transposed

    def prefers(type_: MemDescType) -> Layout:
        return default_nvmma_layout(type_.shape, type_.element_bits) if asked is None else asked

    layouts = "row-major tiles" if asked is None else f"the layout of its descriptor, {layout_attr(asked)}"
    return Need(op, buffer, f"a copy by TMA needs {layouts}", accepts, prefers)


# --- tensor memory --------------------------------------------------------------------------------------------------


def _is_in_tensor_memory(value: SSAValue) -> bool:
    return memdesc_type(value.type).memory_space == ttng.TensorMemorySpaceAttr()


def _tcgen05(op: ttng.TCGen5MMAOp) -> Iterator[Need]:
    two_ctas = op.two_ctas is not None
    yield _operand_of_tcgen05(op, op.a, "A", padded=False)
    yield _operand_of_tcgen05(op, op.b, "B", padded=False)
    yield _accumulator(op, op.d, two_ctas=two_ctas)


def _tcgen05_scaled(op: ttng.TCGen5MMAScaledOp) -> Iterator[Need]:
    kinds = [tt.ScaleDotElemType(kind.value.data) for kind in (op.a_type, op.b_type)]
    mixed = kinds[0] is not kinds[1]
    for name, operand, kind in zip("AB", (op.a, op.b), kinds, strict=True):
        yield _operand_of_tcgen05(op, operand, name, padded=mixed and kind is tt.ScaleDotElemType.E2M1)
    yield _accumulator(op, op.d, two_ctas=op.two_ctas is not None)
    for name, scale in (("A", op.a_scale), ("B", op.b_scale)):
        yield _scales(op, scale, f"the scales of {name} need the layout of scales")


def _operand_of_tcgen05(op: Operation, operand: SSAValue, name: str, *, padded: bool) -> Need:
    if _is_in_tensor_memory(operand):
        return Need(
            op,
            operand,
            f"operand {name} of a tcgen05 MMA needs packed blocks in tensor memory",
            lambda layout: isinstance(layout, TensorMemoryLayout),
            lambda type_: _blocks(type_, two_ctas=False, col_stride=1),
        )
    if not padded:
        return Need(
            op,
            operand,
            f"operand {name} of a tcgen05 MMA needs an nvmma_shared layout",
            lambda layout: isinstance(layout, NvmmaSharedLayout | SharedLinearLayout),
            lambda type_: default_nvmma_layout(type_.shape, type_.element_bits),
        )

    def prefers(type_: MemDescType) -> Layout:
        known = chosen_layout(bare(type_.encoding))
        # Pairs are along K: the rows of A, the columns of B.
        transposed = known.transposed if isinstance(known, NvmmaSharedLayout) else name == "B"
        return padded_fp4_layout(type_.shape, transposed=transposed)

    return Need(
        op,
        operand,
        f"operand {name}, fp4 beside 8-bit floats, needs an nvmma_shared layout with fp4Padded",
        lambda layout: isinstance(layout, NvmmaSharedLayout) and layout.fp4_padded,
        prefers,
    )


def _blocks(type_: MemDescType, *, two_ctas: bool, col_stride: int) -> TensorMemoryLayout:
    rows, columns = type_.shape[-2:]
    return TensorMemoryLayout(min(rows, MAX_BLOCK_M), min(columns, MAX_BLOCK_N), col_stride, two_ctas=two_ctas)


def _accumulator(op: Operation, operand: SSAValue, *, two_ctas: bool) -> Need:
    # Accumulators are never packed (PTX ISA, "tcgen05.mma", layout of D).
    stride = 32 // memdesc_type(operand.type).element_bits

    def accepts(layout: Layout) -> bool:
        return isinstance(layout, TensorMemoryLayout) and (layout.two_ctas, layout.col_stride) == (two_ctas, stride)

    def prefers(type_: MemDescType) -> Layout:
        known = chosen_layout(bare(type_.encoding))
        if isinstance(known, TensorMemoryLayout):
            return replace(known, two_ctas=two_ctas, col_stride=stride)
        return _blocks(type_, two_ctas=two_ctas, col_stride=stride)

    pair = " of a pair of CTAs" if two_ctas else ""
    return Need(op, operand, f"the accumulator of a tcgen05 MMA{pair} needs its layout", accepts, prefers)


def _scales(op: Operation, operand: SSAValue, what: str) -> Need:
    return Need(
        op,
        operand,
        what,
        lambda layout: isinstance(layout, TensorMemoryScalesLayout),
        lambda _type: TensorMemoryScalesLayout(),
    )


def _tmem_copy(op: ttng.TMEMCopyOp) -> Iterator[Need]:
    source, target = memdesc_type(op.src.type), memdesc_type(op.dst.type)
    is_matrix = source.shape == target.shape and source.shape[-2] % 128 == 0 and source.shape[-1] % 4 == 0
    if target.element_bits < 16 and is_matrix:
        blocks = scale_blocks_layout(source.shape)
        what = "scales that are copied to tensor memory need the blocks of the hardware"
        yield Need(op, op.src, what, lambda layout: layout == blocks, lambda _type: blocks)
    yield _target_of_copy(op, source, target)


def _target_of_copy(op: ttng.TMEMCopyOp, source: MemDescType, target: MemDescType) -> Need:
    # Of all that is copied, only scales are of 8 bits, and change their shape.
    if target.element_bits < 16 and source.shape != target.shape:
        return _scales(op, op.dst, "a copy of scales needs the layout of scales")
    return Need(
        op,
        op.dst,
        "a copy to tensor memory needs a layout of tensor memory",
        lambda layout: isinstance(layout, TensorMemoryLayout | TensorMemoryScalesLayout),
        lambda type_: (
            TensorMemoryScalesLayout()
            if type_.element_bits < 16
            else _blocks(type_, two_ctas=False, col_stride=32 // type_.element_bits)
        ),
    )
