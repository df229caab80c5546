"""`memref-plan-arena`: allocations of known sizes get offsets in one piece of memory for each function.

Before:
```mlir
func.func @f() {
  %0 = memref.alloc() : memref<64xf32>
  %1 = memref.alloc() : memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%0 : memref<64xf32>)
  linalg.fill ins(%zero : f32) outs(%1 : memref<64xf32>)
```
After:
```mlir
func.func @f() attributes {arena.bytes = 256 : i64} {
  %0 = memref.alloc() {arena.offset = 0 : i64} : memref<64xf32>
  %1 = memref.alloc() {arena.offset = 0 : i64} : memref<64xf32>
  ...
```
What is never needed at the same time shares memory. A buffer is needed from its first use, or that of a view of it, to
the last; where it was allocated before a loop, during all of the loop. A call needs the arena of the function that it
calls, at the offset that the call has: functions that call each other without end can't have one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnrankedMemRefType,
    UnrealizedConversionCastOp,
    i64,
)
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import memref
from tlx_xdsl.dialects.base.tensors import element_bits
from tlx_xdsl.dialects.scf import LOOPS
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, ops_of

OFFSET = "arena.offset"
"""Attribute of an allocation, and of a call: bytes from the beginning of the function's arena."""
BYTES = "arena.bytes"
"""Attribute of a function: the bytes of its arena, with those of the functions that it calls."""


class PlanArenaPass(Pass):
    """Give each allocation of a known size, and each call, an offset in the arena of its function."""

    name = "memref-plan-arena"

    def run(self, op: ModuleOp) -> None:
        """Set the attributes `arena.offset` and `arena.bytes`.

        Raises CompilationError for functions that call each other without end.
        """
        functions = {each.sym_name.data: each for each in ops_of(op, func.FuncOp)}
        done: dict[str, int] = {}
        for name in functions:
            _plan(name, functions, done, ())


def _plan(name: str, functions: dict[str, func.FuncOp], done: dict[str, int], around: tuple[str, ...]) -> int:
    """Plan a function after those that it calls; gives the bytes of its arena."""
    if name in done:
        return done[name]
    function = functions[name]
    if not function.body.blocks:
        done[name] = 0
        return 0
    times = _Times(function)
    needs: list[tuple[Operation, Lifetime]] = []
    for call in times.calls:
        callee = call.callee.string_value()
        if callee in (*around, name):
            raise error_at(call, f"'{callee}' is called from itself, and so needs memory without end")
        size = _plan(callee, functions, done, (*around, name))
        if size:
            needs.append((call, Lifetime(size, *times.of_call(call))))
    for allocation in times.allocations:
        needs.append((allocation, Lifetime(_bytes(allocation), *times.of_buffer(allocation.memref))))
    offsets, total = pack([lifetime for _, lifetime in needs])
    for (op, _), offset in zip(needs, offsets, strict=True):
        op.attributes[OFFSET] = IntegerAttr(offset, i64)
    function.attributes[BYTES] = IntegerAttr(total, i64)
    done[name] = total
    return total


def _bytes(op: AllocOp) -> int:
    type_ = memref.ranked(op.memref.type)
    count = 1
    for size in type_.get_shape():
        count *= size
    return count * -(-element_bits(type_.element_type) // 8)


@dataclass(eq=False, slots=True)
class _Times:
    """The order of the operations of a function."""

    function: func.FuncOp
    allocations: list[AllocOp] = field(default_factory=list[AllocOp])
    calls: list[func.CallOp] = field(default_factory=list[func.CallOp])
    _first: dict[Operation, int] = field(default_factory=dict[Operation, int])
    _last: dict[Operation, int] = field(default_factory=dict[Operation, int])
    _count: int = 0
    _is_cyclic: bool = False

    def __post_init__(self) -> None:
        numbers = {block: number for number, block in enumerate(self.function.body.blocks)}
        for block, number in numbers.items():
            end = block.last_op
            self._is_cyclic |= end is not None and any(numbers[target] <= number for target in end.successors)
        self._read(self.function)

    def _read(self, op: Operation) -> None:
        self._first[op] = self._count
        self._count += 1
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    self._read(inner)
        self._last[op] = self._count - 1
        if isinstance(op, AllocOp) and DYNAMIC_INDEX not in memref.ranked(op.memref.type).get_shape():
            self.allocations.append(op)
        elif isinstance(op, func.CallOp):
            self.calls.append(op)

    def of_call(self, call: func.CallOp) -> tuple[int, int]:
        """The time of a call; in a body of `linalg`, or anywhere in an operation that runs it many times, once."""
        return self._first[call], self._last[call]

    def of_buffer(self, buffer: SSAValue) -> tuple[int, int]:
        """Return the first and the last use of a buffer."""
        home = buffer.owner.parent if isinstance(buffer.owner, Operation) else None
        everywhere = (0, self._count)
        if self._is_cyclic and home is not None and home.parent is self.function.body:
            return everywhere
        first, last = self._count, -1
        for op in _users(buffer):
            if op is None or home is None:
                return everywhere
            around = _outermost_loop(op, home)
            first, last = min(first, self._first[around]), max(last, self._last[around])
        return (first, last) if last >= 0 else (self._first[self.function], self._first[self.function])


def _outermost_loop(op: Operation, home: Block) -> Operation:
    """The outermost loop around an operation inside of a block; the operation where there is none."""
    found, inner = op, op
    while inner.parent is not home and (outer := inner.parent_op()) is not None:
        inner = outer
        if isinstance(inner, LOOPS):
            found = inner
    return found


def _users(buffer: SSAValue) -> Iterator[Operation | None]:
    """Yield what uses a buffer or a view of it; None where it goes elsewhere."""
    pending = [buffer]
    while pending:
        value = pending.pop()
        for use in value.uses:
            op = use.operation
            yield op
            views = [each for each in op.results if isinstance(each.type, MemRefType | UnrankedMemRefType)]
            if op.has_trait(IsTerminator) or (views and op.regions):
                yield None
            elif not isinstance(op, func.CallOp):
                pending += views
            if isinstance(op, memref.ExtractAlignedPointerAsIndexOp | UnrealizedConversionCastOp):
                yield None


# Where buffers lie in one piece of memory: two that are live at the same time never share a byte.

ALIGNMENT = 64
"""Bytes to a multiple of which every buffer begins: a line of the cache, and the widest vector."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer, and when it is needed."""

    size: int
    """Bytes."""
    first: int
    """The first moment at which it is needed."""
    last: int
    """The last one."""

    def meets(self, other: Lifetime) -> bool:
        """Return whether both are needed at some moment."""
        return self.first <= other.last and other.first <= self.last


def aligned(size: int) -> int:
    """The next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """An offset for each buffer, and the bytes of all together.

    The largest is placed first, each at the lowest offset that is free during its life.
    """
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    order = sorted(range(len(lifetimes)), key=lambda number: (-lifetimes[number].size, lifetimes[number].first))
    for number in order:
        new = lifetimes[number]
        if not new.size:
            continue
        at, size = 0, aligned(new.size)
        taken = sorted(
            (offsets[other], offsets[other] + aligned(lifetimes[other].size))
            for other in placed
            if new.meets(lifetimes[other])
        )
        for begin, end in taken:
            if begin - at >= size:
                break
            at = max(at, end)
        offsets[number] = at
        placed.append(number)
    total = max((offsets[number] + aligned(lifetimes[number].size) for number in placed), default=0)
    return offsets, total
