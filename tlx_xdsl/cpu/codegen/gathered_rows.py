"""Gathered rows that are stored as they are go from memory to memory, without the tile in between.

```mlir
scf.for %i = %c0 to %n step %c1 {
  %from = memref.reinterpret_cast %x ...
  %to = memref.subview %tile[%i, 0] [1, 128] [1, 1]
  memref.copy %from, %to
}
%rows = memref.subview %tile[0, 0] [%n, 128] [1, 1]
memref.copy %rows, %y
```

A row that is read may be one that is written, which is known when it runs: a first loop asks whether all rows lie apart
from `%y`, and has the cache fetch them. If not, what stands here is done. Else misses of the cache by both sides
overlap, and stores of long rows are aligned: one of 64 bytes costs as much as two where it crosses a line of the cache,
as all do in most of numpy's arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import memref as upstream, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.transforms.rewriting import constant_integer

from ..linalg.emitter import INDEX
from .builder import I1, I8, I64, Builder, Value, constant
from .forwarding import HARMLESS, PURE, VIEWS, buffer_of
from .views import LINE, View, byte_range, fetch

_FETCHED = 4 * LINE
"""Bytes of each row that the first loop asks for before they are copied. The rest of rows of 512 comes by itself: of 1,
2, 4 and 9 lines, 4 were the fastest (15 % faster than none, Zen 3, 2026-12-01)."""


@dataclass(frozen=True)
class Gather:
    """A loop that copies rows to a tile, which is then stored."""

    loop: scf.ForOp
    copy: memref.CopyOp
    before: list[Operation]
    """What fills the tile otherwise: perhaps a fill, and the loop."""


def write_gather(
    b: Builder, end: Value, source: Callable[[Value], View], target: View, copy_row: Callable[[Value], None],
    by_tile: Callable[[], None],
) -> None:  # fmt: skip
    """Write both ways, and the loop over all rows that chooses one."""
    zero, one = b.index(0), b.index(1)
    low, high = byte_range(b, target)
    first = b.binary("add", low, one)
    span = b.binary("sub", high, first)
    with b.loop(zero, end, one, [constant(1, I1)]) as (number, so_far, following):
        row = source(number)
        start, stop = byte_range(b, row)
        many = _FETCHED // row.bytes
        fetch(b, row, row.offset, min(row.sizes[-1], many) if isinstance(row.sizes[-1], int) else 1)
        # One comparison without a sign: the number of a row that ends before the target wraps around.
        reach = b.binary("add", span, b.binary("sub", stop, start))
        is_apart = b.compare("icmp uge", b.binary("sub", stop, first), reach)
        following[:] = [b.binary("and", so_far[0], is_apart)]
    apart, together, done = b.name(), b.name(), b.name()
    b.branch_if(following[0], apart, together)
    b.begin(apart)
    with b.loop(zero, end, one) as (number, _, _):
        copy_row(number)
    b.branch(done)
    b.begin(together)
    by_tile()
    b.branch(done)
    b.begin(done)


def write_row(b: Builder, source: Value, target: Value, size: int) -> None:
    """Copy bytes that lie apart; the first and the last store may be of bytes that an aligned one has, too."""

    def copy(at: Value, align: int = 1) -> None:
        b.store(b.load(I64, b.gep(I8, source, at), LINE // 8), b.gep(I8, target, at), align)

    step, last = b.index(LINE), b.index(size - LINE)
    copy(b.index(0))
    past = b.binary("and", b.cast("ptrtoint", target, I64), b.index(LINE - 1))
    with b.loop(b.binary("sub", step, past), last, step) as (at, _, _):
        copy(at, LINE)
    copy(last)


def gathers(function: Operation) -> dict[Operation, Gather]:
    """Find the gathers that are stored as they are: by their fills and loops, which wait, and by what stores them."""
    found: dict[Operation, Gather] = {}
    for op in function.walk():
        if isinstance(op, memref.CopyOp) and (gather := _gather(op)) is not None:
            found |= dict.fromkeys([*gather.before, op], gather)
    return found


def _gather(store: memref.CopyOp) -> Gather | None:
    tile, part = buffer_of(store.source), store.source
    if tile is None or buffer_of(store.target) is not None:
        return None
    users = {use.operation for use in tile.uses} - {store, part.owner}
    fills = [op for op in users if isinstance(op, linalg.FillOp)]
    views = [op for op in users if isinstance(op, upstream.SubviewOp)]
    if len(fills) > 1 or len(views) != 1 or len(users) != len(fills) + 1 or not (part is tile or part.has_one_use()):
        return None
    (view,), loop = views, views[0].parent_op()
    if not isinstance(loop, scf.ForOp) or loop.results or loop.parent is not store.parent or loop.lb.type != INDEX:
        return None
    if any(fill.parent is not store.parent or not fill.is_before_in_block(loop) for fill in fills):
        return None
    body = loop.body.block
    copies = [op for op in body.ops if isinstance(op, memref.CopyOp)]
    if not all(map(_only_computes, body.ops)) or len(copies) != 1 or copies[0].target is not view.result:
        return None
    # The rows that are stored are those of the loop, as long as they are.
    at, size, bounds = *_box(view.result), [_number(each) for each in (loop.lb, loop.step)]
    whole = [0] * len(at), [_number(loop.ub), *size[1:]]
    if bounds != [0, 1] or at != [body.args[0], *whole[0][1:]] or size[0] != 1 or _box(part) != whole:
        return None
    op = loop.next_op
    while op is not None and op.name in HARMLESS:
        op = op.next_op
    return Gather(loop, copies[0], [*fills, loop]) if op is store and buffer_of(copies[0].source) is None else None


def _only_computes(op: Operation) -> bool:
    """Return whether an operation of the loop can be done again, whatever was stored meanwhile."""
    if op.name == "memref.load":
        return buffer_of(op.operands[0]) is not None
    return op.name in PURE | VIEWS or isinstance(op, memref.CopyOp | scf.YieldOp)


def _number(value: SSAValue) -> SSAValue | int:
    number = constant_integer(value)
    return value if number is None else number


def _box(memory: SSAValue) -> tuple[list[SSAValue | int], list[SSAValue | int]]:
    """The first place of a part of a tile, and its sizes; nothing where it leaves out elements in between."""
    view = memory.owner
    if not isinstance(view, upstream.SubviewOp):
        sizes = memref.sizes_of(memory.type)
        return [0] * len(sizes), [size or 0 for size in sizes]
    if set(view.static_strides.get_values()) != {1}:
        return [], []
    lists = ((view.static_offsets, iter(view.offsets)), (view.static_sizes, iter(view.sizes)))
    at, size = (
        [_number(next(given)) if each == DYNAMIC_INDEX else each for each in static.get_values()]
        for static, given in lists
    )
    return at, size
