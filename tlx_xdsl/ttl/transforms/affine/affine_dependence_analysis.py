"""`ttl-affine-dependence-analysis`: write down which transfers must keep their order, and which loops are parallel.

Before:
```mlir
affine.for %i = 0 to 8 {
  %v = ttl.cb_wait %cb : !ttl.cb<...> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  %xf = ttl.copy %v, %acc[%c0, %i] : ... -> !ttl.transfer_handle<write>
  ttl.wait %xf
  ttl.cb_pop %cb
}
```
After: the blocks of two tiles overlap in neighbouring iterations, so the last one to write a tile must stay the last.
```mlir
affine.for %i = 0 to 8 {
  %v = ttl.cb_wait %cb : !ttl.cb<...> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  %xf = ttl.copy %v, %acc[%c0, %i] {ttl.transfer = 0 : i64, ttl.depends_on = [
      {kind = "WAW", on = 0 : i64, distance = "(1)"}]} : ... -> !ttl.transfer_handle<write>
  ttl.wait %xf
  ttl.cb_pop %cb
}
```
Transfers are numbered in program order. A copy gets `ttl.independent` when no other transfer of the kernel touches
what it writes or writes what it touches, in any iteration: it may be outstanding together with any of them. Otherwise
`ttl.depends_on` lists what it depends on: which transfer, whether it reads after a write (RAW), writes after a read
(WAR) or writes after a write (WAW), and by how much the indices of the common loops differ, outermost first.
Transfers of different threads that touch the same part of a tensor are `unordered`: only the protocol of circular
buffers between the threads can order them, which is not analysed here.

A loop gets `ttl.parallel` when it carries no dependence of transfers, no value and no synchronisation with
semaphores, and stores only into blocks that it acquires itself. The order in which it takes blocks from its circular
buffers remains.

The attributes are for the reader, and for tools: passes ask the analysis (`analysis.ttl.transfers`), which is never
out of date.
"""

from __future__ import annotations

from math import isinf

from xdsl.dialects import affine
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from tlx_xdsl.transforms.rewriting import Pass, ops_of
from tlx_xdsl.ttl.analysis.affine_dependence import Distance
from tlx_xdsl.ttl.analysis.linear import Interval
from tlx_xdsl.ttl.analysis.transfers import Dependence, dependences_of
from tlx_xdsl.ttl.dialects.ttl import CopyOp, KernelOp, SemaphoreOp, WritingOp, acquisition_of

INDEPENDENT = "ttl.independent"
DEPENDS_ON = "ttl.depends_on"
TRANSFER = "ttl.transfer"
PARALLEL = "ttl.parallel"

_SHOWN = 4
"""So many distances are listed; of more, only the directions."""


class AffineDependenceAnalysisPass(Pass):
    """Annotate the transfers and the loops of every kernel."""

    name = "ttl-affine-dependence-analysis"

    def run(self, op: ModuleOp) -> None:
        """Annotate the module in place."""
        for kernel in ops_of(op, KernelOp):
            found = dependences_of(kernel)
            _annotate_copies(kernel, found)
            for loop in ops_of(kernel, affine.ForOp):
                loop.attributes.pop(PARALLEL, None)
                if _is_parallel(loop, found):
                    loop.attributes[PARALLEL] = UnitAttr()


def _annotate_copies(kernel: KernelOp, dependences: list[Dependence]) -> None:
    numbers = {copy: number for number, copy in enumerate(ops_of(kernel, CopyOp))}
    entries: dict[CopyOp, list[Attribute]] = {copy: [] for copy in numbers}
    for each in dependences:
        for sink, source, kind, distances in _edges(each):
            entry: dict[str, Attribute] = {"kind": StringAttr(kind), "on": IntegerAttr(numbers[source], i64)}
            if distances is not None:
                entry["distance"] = StringAttr(_spelled(distances))
            entries[sink].append(DictionaryAttr(entry))
    for copy, number in numbers.items():
        for name in (INDEPENDENT, DEPENDS_ON):
            copy.attributes.pop(name, None)
        copy.attributes[TRANSFER] = IntegerAttr(number, i64)
        if entries[copy]:
            copy.attributes[DEPENDS_ON] = ArrayAttr(entries[copy])
        else:
            copy.attributes[INDEPENDENT] = UnitAttr()


def _edges(found: Dependence) -> list[tuple[CopyOp, CopyOp, str, set[Distance] | None]]:
    """Return which transfer depends on which, how, and at what distances."""
    if not found.same_thread:
        return [(found.sink, found.source, "unordered", None), (found.source, found.sink, "unordered", None)]
    forward = {each for each in found.conflicts.distances if not _is_backward(each)}
    backward = {_mirrored(each) for each in found.conflicts.distances if _is_backward(each)}
    if found.source is found.sink:
        # Each pair of iterations was counted from both ends, and an iteration with itself.
        forward, backward = {each for each in forward if any(map(any, each))}, set[Distance]()
    edges: list[tuple[CopyOp, CopyOp, str, set[Distance] | None]] = []
    if forward:
        edges.append((found.sink, found.source, _kind(found.source_writes, found.sink_writes), forward))
    if backward:
        edges.append((found.source, found.sink, _kind(found.sink_writes, found.source_writes), backward))
    return edges


def _kind(first_writes: bool, second_writes: bool) -> str:
    return f"{'W' if second_writes else 'R'}A{'W' if first_writes else 'R'}"


def _is_backward(distance: Distance) -> bool:
    return next((high < 0 for low, high in distance if (low, high) != (0, 0)), False)


def _mirrored(distance: Distance) -> Distance:
    return tuple((-high, -low) for low, high in distance)


def _spelled(distances: set[Distance]) -> str:
    if len(distances) <= _SHOWN:
        return ", ".join(f"({', '.join(map(_interval, each))})" for each in sorted(distances))
    directions = {tuple("<" if low > 0 else ">" if high < 0 else "=" for low, high in each) for each in distances}
    return ", ".join(f"({', '.join(each)})" for each in sorted(directions))


def _interval(interval: Interval) -> str:
    low, high = interval
    if low == high:
        return str(low)
    return f"{'' if isinf(low) else low}..{'' if isinf(high) else high}"


def _is_parallel(loop: affine.ForOp, dependences: list[Dependence]) -> bool:
    """Return whether the iterations of a loop could change places, but for the order of blocks in circular buffers."""
    if loop.inits or any(isinstance(each, SemaphoreOp) for each in loop.walk()):
        return False
    if any(not loop.is_ancestor(acquisition_of(each.place)) for each in ops_of(loop, WritingOp)):
        return False
    return not any(loop in each.loops and each.conflicts.carried(each.loops.index(loop)) for each in dependences)
