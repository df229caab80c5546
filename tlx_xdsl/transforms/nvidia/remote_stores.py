"""Stores of tensors to the shared memory of another CTA, element by element from the registers of the threads.

The offset of an element is linear over the bits of the number of the thread and of its register, so a thread computes
one address, and its registers lie at fixed distances from it. What lies side by side is stored at once, up to 16 bytes;
of several threads that hold an element one stores it, since an asynchronous store counts its bytes.

Sums of the tensor cores, and parts of them, are stored from the registers in which they arrive: any other layout would
take them through shared memory first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import LayoutAttr, as_tensor, layout_attr, num_warps_of
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import LANE, REGISTER, WARP, dim_names
from tlx_xdsl.layouts.distributed import default_blocked_layout
from tlx_xdsl.layouts.encodings import BlockedLayout, DistributedLayout, Ints, NvidiaMmaLayout
from tlx_xdsl.layouts.f2 import image
from tlx_xdsl.layouts.offset_terms import OffsetTerm, offset_of, terms_of
from tlx_xdsl.text.diagnostics import error_at

from ..layout.pinned_tensors import result_layout
from ..rewriting import insert_before
from .emit.integers import Integers
from .emit.ptx import run
from .emit.shared_address import address_terms, byte_of, remote_address, remote_tile
from .emit.threads import registers_of, thread_number

WORD = 4
"""Bytes of the smallest asynchronous store (PTX ISA, "st.async", `.type`)."""
WIDEST = 16
"""Bytes that a thread stores at once (PTX ISA, "Vectors")."""


@dataclass(frozen=True)
class StorePlan:
    """The stores of the registers of a thread."""

    thread: tuple[OffsetTerm, ...]
    """The byte of register 0, as a function of the number of the thread."""
    chunks: tuple[tuple[int, Ints], ...]
    """Distances from there (by exclusive or), and the registers that lie side by side from each on."""
    owners: int
    """The bits of the number of the thread that choose between copies: those with zeros store."""
    reach: int
    """The bits that the byte of register 0 can have."""


def lower_remote_store(op: tlx.RemoteStoreOp | tlx.AsyncRemoteStoreOp) -> None:
    """Have the threads store their registers, before `op`.

    Raises CompilationError where the buffer's elements have no linear addresses.
    """
    is_async = isinstance(op, tlx.AsyncRemoteStoreOp)
    terms = address_terms(op, op.dst)
    value = _as_integers(op, _where_computed(op, op.src))
    size = ttg.element_bits(ttg.tensor_type(value.type).element_type) // 8
    least = max(size, WORD) if is_async else size
    value, plan = _settled(op, value, terms, size, least)
    integers = Integers(op)
    base, start = remote_tile(op, op.dst)
    here = integers.xor(byte_of(integers, plan.thread, [thread_number(op)]), byte_of(integers, terms, start))
    # The distance of a chunk is in the instruction where no carry and no cancellation is possible.
    reach = plan.reach | (0 if all(at == 0 for at in start) else _reach(terms))
    address = integers.value(integers.add(base, here))
    registers = registers_of(op, value)
    owner = integers.value(integers.both(thread_number(op), plan.owners)) if plan.owners else None
    barrier = remote_address(op, op.barrier) if is_async else None
    for distance, members in plan.chunks:
        target, text = address, f"+{distance}" if distance else ""
        if distance & reach:
            target, text = integers.value(integers.add(base, integers.xor(here, distance))), ""
        words = _words(integers, [registers[member] for member in members], size)
        _store(op, target, text, words, len(members) * size, owner, barrier)


def _where_computed(op: Operation, value: SSAValue) -> SSAValue:
    """The tensor in the layout of the accumulator that it is a part of, if it is, in which no element moves."""
    encoding, type_ = _encoding_of_sums(value), ttg.tensor_type(value.type)
    if encoding is None or encoding == type_.encoding:
        return value
    converted = TensorType(type_.element_type, type_.get_shape(), encoding)
    return insert_before(op, ttg.ConvertLayoutOp(operands=[value], result_types=[converted])).result


def _encoding_of_sums(value: SSAValue) -> Attribute | None:
    views: list[Operation] = []
    while not _is_accumulator(value):
        op = value.owner
        if not isinstance(op, Operation) or len(op.operands) != 1 or as_tensor(op.operands[0].type) is None:
            return None
        if not isinstance(op, ttg.ConvertLayoutOp):
            views.append(op)
        value = op.operands[0]
    encoding: Attribute | None = ttg.tensor_type(value.type).encoding
    for op in reversed(views):
        encoding = None if encoding is None else result_layout(op, encoding)
    return encoding


def _is_accumulator(value: SSAValue) -> bool:
    type_ = as_tensor(value.type)
    return (
        type_ is not None
        and isinstance(type_.encoding, LayoutAttr)
        and isinstance(type_.encoding.data, NvidiaMmaLayout)
    )


def _as_integers(op: Operation, value: SSAValue) -> SSAValue:
    """The bits of a tensor's elements: PTX has no registers for every type."""
    type_ = ttg.tensor_type(value.type)
    if isinstance(type_.element_type, IntegerType):
        return value
    integer = TensorType(IntegerType(ttg.element_bits(type_.element_type)), type_.get_shape(), type_.encoding)
    make = tt.PtrToIntOp if isinstance(type_.element_type, tt.PointerType) else tt.BitcastOp
    return insert_before(op, make(operands=[value], result_types=[integer])).result


def _settled(
    op: Operation, value: SSAValue, terms: Sequence[OffsetTerm], size: int, least: int
) -> tuple[SSAValue, StorePlan]:
    """The tensor in a layout in which threads hold `least` bytes side by side, and the plan for that."""
    type_ = ttg.tensor_type(value.type)
    shape, layout = type_.get_shape(), type_.encoding
    if not isinstance(layout, LayoutAttr) or not isinstance(layout.data, DistributedLayout):
        raise error_at(op, f"the threads that hold {type_} are not known: it has no layout")
    plan = plan_stores(layout.data, shape, terms, size)
    if _width(plan) * size >= least:
        return value, plan
    warps, count = num_warps_of(op) or 1, least // size
    for dim in reversed(range(len(shape))):
        if shape[dim] < count:
            continue
        other = _along(shape, dim, count, warps)
        plan = plan_stores(other, shape, terms, size)
        if _width(plan) * size >= least:
            converted = TensorType(type_.element_type, shape, layout_attr(other))
            return insert_before(op, ttg.ConvertLayoutOp(operands=[value], result_types=[converted])).result, plan
    raise error_at(
        op,
        f"an asynchronous remote store writes {least} bytes or more at once, but no two of the {size}-byte elements of "
        "the buffer lie side by side",
    )


def _along(shape: Ints, dim: int, count: int, warps: int) -> BlockedLayout:
    """A layout in which a thread holds `count` neighbours along `dim`, and its own neighbours continue along it."""
    # From the slowest dimension to the fastest, which is `dim`.
    dims = [*(other for other in range(len(shape)) if other != dim), dim]
    tile = default_blocked_layout(tuple(shape[d] // (count if d == dim else 1) for d in dims), warps)
    at = {d: position for position, d in enumerate(dims)}
    return BlockedLayout(
        tuple(count if d == dim else 1 for d in range(len(shape))),
        tuple(tile.threads_per_warp[at[d]] for d in range(len(shape))),
        tuple(tile.warps_per_cta[at[d]] for d in range(len(shape))),
        tuple(reversed(dims)),
    )


def plan_stores(layout: DistributedLayout, shape: Ints, terms: Sequence[OffsetTerm], size: int) -> StorePlan:
    """The stores of a tensor of `shape` whose elements have `size` bytes, to a buffer with these terms."""
    linear = distributed_to_linear(layout, shape)
    linear = linear.transpose_outs(dim_names(len(shape)))
    images = {
        name: [offset_of(terms, basis) for basis in linear.bases.get(name, ())] for name in (REGISTER, LANE, WARP)
    }
    free = linear.free_variables()
    lanes = len(images[LANE])
    threads = [*images[LANE], *images[WARP]]
    reach = _union(threads)
    # Registers that lie side by side, as long as nothing else reaches between them.
    moving = [bit for bit in range(len(images[REGISTER])) if not free.get(REGISTER, 0) >> bit & 1]
    inside: list[int] = []
    while size << (len(inside) + 1) <= WIDEST:
        step = next((bit for bit in moving if images[REGISTER][bit] == size << len(inside)), None)
        others = [images[REGISTER][bit] for bit in moving if bit != step and bit not in inside]
        if step is None or _union([*threads, *others]) & ((size << (len(inside) + 1)) - 1):
            break
        inside.append(step)
    chunks: list[tuple[int, Ints]] = []
    for first in _combinations([bit for bit in moving if bit not in inside]):
        distance = image(images[REGISTER], first)
        chunks.append((distance, tuple(first | member for member in _combinations(inside))))
    owners = free.get(LANE, 0) | free.get(WARP, 0) << lanes
    return StorePlan(terms_of([threads]), tuple(chunks), owners, reach)


def _combinations(bits: Sequence[int]) -> list[int]:
    """The numbers that have no other bits than these, in the order of their bits."""
    numbers = [0]
    for bit in bits:
        numbers += [number | 1 << bit for number in numbers]
    return numbers


def _union(images: Iterable[int]) -> int:
    return reduce(lambda bits, image: bits | image, images, 0)


def _reach(terms: Sequence[OffsetTerm]) -> int:
    """The bits that the byte of an element can have."""
    return _union(term.value(term.mask) for term in terms)


def _width(plan: StorePlan) -> int:
    """Elements of a chunk."""
    return len(plan.chunks[0][1])


def _words(integers: Integers, elements: Sequence[SSAValue], size: int) -> list[SSAValue]:
    """The registers of 32 or 64 bits that hold elements side by side, the first one lowest."""
    if size >= WORD:
        return list(elements)
    per_word = WORD // size
    words: list[SSAValue] = []
    for first in range(0, len(elements), per_word):
        parts = [integers.unsigned(element) for element in elements[first : first + per_word]]
        word = parts[0]
        for position, part in enumerate(parts[1:], 1):
            word = integers.value(integers.either(word, integers.shifted(part, 8 * size * position)))
        words.append(word)
    return words


def _store(
    op: Operation,
    target: SSAValue,
    text: str,
    words: Sequence[SSAValue],
    total: int,
    owner: SSAValue | None,
    barrier: SSAValue | None,
) -> None:
    """One instruction for `total` bytes (PTX ISA, "st", "st.async")."""
    operands = [target, *words]
    names = [f"${1 + number}" for number in range(len(words))]
    bits = 8 * min(total // len(words), 8)
    kind = f".v{len(words)}.b{bits}" if len(words) > 1 else f".b{bits}"
    data = f"{{{', '.join(names)}}}" if len(names) > 1 else names[0]
    if barrier is None:
        code = f"st.shared::cluster{kind} [$0{text}], {data};"
    else:
        code = f"st.async.shared::cluster.mbarrier::complete_tx::bytes{kind} [$0{text}], {data}, [${len(operands)}];"
        operands.append(barrier)
    if owner is not None:
        code = f"{{ .reg .pred p; setp.eq.s32 p, ${len(operands)}, 0; @p {code} }}"
        operands.append(owner)
    run(op, code, operands)
