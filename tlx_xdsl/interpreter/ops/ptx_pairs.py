"""PTX of tensor cores: that of pairs of CTAs (PTX ISA, "tcgen05.mma", "tcgen05.cp", "tcgen05.commit"), and shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tlx_xdsl.dialects.tlx import SHIFTED_COLUMNS
from tlx_xdsl.dialects.tt import ScaleDotElemType
from tlx_xdsl.dialects.ttng import PAIR_ROWS
from tlx_xdsl.element_types import BY_FORMAT, tcgen05_types
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.matrix_descriptors import element_bytes, scale_line_bytes
from tlx_xdsl.numerics.arrays import Array, Dtype, numpy_type
from tlx_xdsl.numerics.matmul import multiply

from ..addresses import Address, bytes_view
from ..faults import fault_at
from ..matmul import scaled_operand
from ..memory import View
from ..ptx.text import Statement, UnknownInstruction
from ..registry import Coroutine
from .ptx_actions import Action, Running, acts
from .ptx_cluster import barrier_view
from .tcgen05 import (
    LANES,
    SCALE_COLUMNS,
    SCALE_ROWS,
    commit,
    issue_copy,
    issue_product,
    issue_shift,
    scales_of_blocks,
)


@dataclass(frozen=True)
class _Kind:
    """`.kind`, with what says how blocks are scaled."""

    types: dict[int, Any]
    """The elements by their codes in the instruction descriptor; those of 4 bits as bytes of two."""
    scales: int = 0
    """That an instruction takes of a row."""


def _types(kind: str) -> dict[int, Any]:
    return {code: numpy_type(each) for code, each in tcgen05_types(kind).items()}


_BYTE_FLOATS = _types("f8f6f4")
_PAIRS_OF_E2M1 = {1: np.uint8}
_KINDS: dict[tuple[str, ...], _Kind] = {
    ("kind::f16",): _Kind(_types("f16")),
    ("kind::f8f6f4",): _Kind(_BYTE_FLOATS),
    ("kind::mxf8f6f4", "block_scale", "scale_vec::1X"): _Kind(_BYTE_FLOATS, 1),
    ("kind::mxf4", "block_scale", "scale_vec::2X"): _Kind(_PAIRS_OF_E2M1, 2),
    ("kind::mxf4nvf4", "block_scale", "scale_vec::4X"): _Kind(_PAIRS_OF_E2M1, 4),
}
_FORMATS = {numpy_type(BY_FORMAT[kind.keyword]): kind for kind in (ScaleDotElemType.E4M3, ScaleDotElemType.E5M2)}
_FORMATS[np.dtype(np.uint8)] = ScaleDotElemType.E2M1


@acts("tcgen05")
def tensor_core(statement: Statement) -> Action | None:
    """Products, copies of scales, and commits, of pairs; shifts of one CTA."""
    match statement.modifiers:
        case ("mma", "cta_group::2", *form) if (kind := _KINDS.get(tuple(form))) is not None:
            return lambda running: _product(running, kind)
        case ("shift", "cta_group::1", "down"):
            return _shift
        case ("cp", "cta_group::2", "32x128b", "warpx4"):
            return _copy
        case ("commit", "cta_group::2", "mbarrier::arrive::one", "shared::cluster", "multicast::cluster", "b64"):
            return _commit
        case ("commit", "cta_group::2", "mbarrier::arrive::one", "shared::cluster", "b64"):
            return _commit_here
        case _:
            return None


def _commit(running: Running) -> Coroutine:
    yield None
    running.once()
    pair = 3 << (running.task.block.rank & ~1)
    if (mask := running.number(1, "b16")) != pair:
        raise fault_at(running.op, f"the mask {mask:#x} is not that of the pair, {pair:#x}")
    commit(running.task, running.op, barrier_view(running, 0), pair=True)


def _commit_here(running: Running) -> Coroutine:
    yield None
    running.once()
    commit(running.task, running.op, barrier_view(running, 0), pair=False)


# Products ------------------------------------------------------------------------------------------------------------


def _product(running: Running, kind: _Kind) -> Coroutine:
    yield None
    running.once()
    _check_even(running)
    op, operands = running.op, running.statement.operands
    if len(operands) != (7 if kind.scales else 5):
        raise _unreadable(running)
    target, _ = _tensor_memory(running, 0)
    form = running.number(3)
    # Where blocks are scaled, M counts in 128, in the same highest bits.
    m, n = (form >> 24 & 31) * 16, (form >> 17 & 63) * 8
    left, right = (np.dtype(_type(running, kind, form >> at & 7)) for at in (7, 10))
    if str(operands[1]).startswith("["):
        a, _ = _tensor_memory(running, 1)
    else:
        a = _operand(running, running.number(1, "b64"), m // 2, left, k_major=not form >> 15 & 1)
    b = _operand(running, running.number(2, "b64"), n // 2, right, k_major=not form >> 16 & 1)
    added = running.value(str(operands[-1]), "pred")
    halved = m == 2 * PAIR_ROWS and target.shape == (m, n // 2)
    if target.shape != (m // 2, n) and not halved:
        raise fault_at(op, f"a product of {m} x {n} elements, the accumulator in each CTA is {list(target.shape)}")
    scales = tuple(_scales(running, index, form, kind.scales) for index in ((4, 5) if kind.scales else ()))

    def scaled(view: View, number: int, part: int, first: int) -> Array:
        """The rows of A, or of a half of B, from row `first` of what `part` has the scales of."""
        values = view.read(op)
        if not scales:
            return values
        found = elsewhere(scales[number], part).read(op)[first : first + len(values)]
        floats = found.view(np.uint8 if form >> 23 & 1 else ml_dtypes.float8_e4m3fn)
        return scaled_operand(op, values, floats, _FORMATS[values.dtype], len(values))

    def elsewhere(view: View, part: int) -> View:
        return view.elsewhere(running.task.cluster.blocks[running.task.block.rank + part].tensor)

    def compute(a_views: list[View], b_views: list[View], part: int, before: Array | None) -> Array:
        halves = [scaled(view, 1, part, half * n // 2).T for half, view in enumerate(b_views)]
        return multiply(scaled(a_views[part], 0, part, 0), np.concatenate(halves, axis=1), before, np.dtype(np.float32))

    issue_product(
        running.task, op, a, b, target, pair=True, adds=bool(added), rows=m // 2,
        prepare=lambda left, right: lambda part, before: compute(list(left), list(right), part, before),
        others=[elsewhere(view, part) for view in scales for part in (0, 1)],
    )  # fmt: skip


def _type(running: Running, kind: _Kind, code: int) -> Any:
    if (found := kind.types.get(code)) is None:
        raise UnknownInstruction(f"the interpreter knows no type {code} of the PTX '{running.statement.text}'")
    return found


def _scales(running: Running, index: int, form: int, count: int) -> View:
    """The scales that an instruction takes: `count` columns of all rows, from the one in the instruction descriptor."""
    view, column = _tensor_memory(running, index)
    word, rest = divmod(column, view.shape[0] // LANES)
    first = word * SCALE_COLUMNS + (form >> (29 if index == 4 else 4) & 3)
    if rest or first + count > view.shape[1]:
        raise fault_at(running.op, f"column {column} of '{view.name}' is not where {count} scales of each row begin")
    return view.derive(("scales", first, count), view.offsets[:, first : first + count])


def _operand(running: Running, descriptor: int, rows: int, dtype: Dtype, *, k_major: bool) -> View:
    """The elements of an operand, of `rows` rows along M or N and `STEP_BYTES` along K."""
    try:
        places = element_bytes(descriptor, rows, dtype.itemsize, k_major=k_major)
    except InputError as error:
        raise UnknownInstruction(f"the interpreter can't read it: {error}") from None
    return _described(running, descriptor, places, dtype)


def _described(running: Running, descriptor: int, places: Array, dtype: Dtype) -> View:
    start = (descriptor & 0x3FFF) * 16
    memory = running.task.block.shared
    # A descriptor has no bits for more than the byte: it is the buffer whose address was taken last there.
    for view in reversed(memory.pointed.values()):
        if view.footprint.start <= start < view.footprint.end:
            return bytes_view(Address(memory, view.family.number, start), places, dtype)
    raise fault_at(running.op, f"the descriptor {descriptor:#x} points at no buffer")


# Copies of scales ----------------------------------------------------------------------------------------------------


def _copy(running: Running) -> Coroutine:
    yield None
    running.once()
    _check_even(running)
    view, column = _tensor_memory(running, 0)
    descriptor = running.number(1, "b64")
    try:
        places = scale_line_bytes(descriptor)
    except InputError as error:
        raise UnknownInstruction(f"the interpreter can't read it: {error}") from None
    word, rest = divmod(column, view.shape[0] // LANES)
    down, right, block = rest * LANES, word * SCALE_COLUMNS, (SCALE_ROWS, SCALE_COLUMNS)
    if down % SCALE_ROWS or down + SCALE_ROWS > view.shape[0] or right + SCALE_COLUMNS > view.shape[1]:
        raise fault_at(running.op, f"column {column} of '{view.name}' is not where a block of scales begins")
    offsets = view.offsets[down : down + SCALE_ROWS, right : right + SCALE_COLUMNS]
    target = view.derive(("block", down, right), offsets)
    source = _described(running, descriptor, places, view.dtype)
    issue_copy(running.task, running.op, source, target, lambda values: scales_of_blocks(values, block), pair=True)


# Shifts of rows ------------------------------------------------------------------------------------------------------


def _shift(running: Running) -> Coroutine:
    yield None
    running.once()
    view, column = _tensor_memory(running, 0)
    per_column = 4 // view.dtype.itemsize
    first, last = (each * per_column for each in (column, column + SHIFTED_COLUMNS))
    issue_shift(running.task, running.op, view.derive(("columns", first, last), view.offsets[:, first:last]))


# Operands ------------------------------------------------------------------------------------------------------------


def _tensor_memory(running: Running, index: int) -> tuple[View, int]:
    """The buffer that operand `index`, an address in brackets, is in, and the columns from its first one on."""
    base, _, distance = str(running.statement.operands[index]).strip("[ ]").partition("+")
    view = running.others.get(base.strip())
    if not isinstance(view, View):
        raise _unreadable(running)
    return view, int(distance or 0)


def _check_even(running: Running) -> None:
    if running.task.block.rank % 2:
        raise fault_at(running.op, "the odd CTA of a pair issues what is for both")


def _unreadable(running: Running) -> UnknownInstruction:
    return UnknownInstruction(f"the interpreter can't read the operands of the PTX '{running.statement.text}'")
