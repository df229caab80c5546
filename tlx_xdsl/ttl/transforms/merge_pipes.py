"""`ttl-merge-pipes`: pipes that differ in their place only become one pipe with several ways.

Before:
```mlir
%p0 = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
%p1 = ttl.create_pipe src=[0, 1] dst_range=[[1, 1], [3, 1]] : !ttl.pipe
ttl.if_src %p0 {
  %xf = ttl.copy %view, %p0 : ...
}
ttl.if_src %p1 {
  %xf = ttl.copy %view, %p1 : ...
}
...
```
After:
```mlir
%p0 = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] count=[1, 2] : !ttl.pipe
ttl.if_src %p0 {
  %xf = ttl.copy %view, %p0 : ...
}
...
```
A core is the source of one way at most, so it finds the way by its coordinates, and the text of the kernel grows with
the kinds of pipes, not with their number. The ways of a row, a column or a rectangle of cores are merged where both
ends are moved, or where the sources are and all send to the same receivers (`gathers`): the receivers then have a loop
over the sources, in the order of the program. What is done at each end must be the same, and stand one after the other;
the order of pipes is kept for each core.
"""

from __future__ import annotations

from itertools import groupby

from xdsl.dialects import affine
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of, replace

from ..dialects.ttl import CopyOp, CreatePipeOp, Direction, IfDstOp, IfSrcOp, KernelOp

_Step = tuple[int, int, bool]
"""How the source moves from one pipe to the next, and whether the receivers are the same."""
_Site = IfSrcOp | IfDstOp


class MergePipesPass(Pass):
    """Merge the pipes of every kernel."""

    name = "ttl-merge-pipes"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for kernel in ops_of(op, KernelOp):
            sites = _sites(kernel)
            for run in _runs(sites):
                for family in _families(run):
                    if len(family) > 1:
                        _merge(family, sites)


_Sites = dict[CreatePipeOp, list[_Site]]


def _sites(kernel: KernelOp) -> _Sites:
    """The branches on the sides of each pipe, in program order; none where something else than copies uses it, too."""
    found: _Sites = {pipe: [] for pipe in ops_of(kernel, CreatePipeOp) if pipe.count == (1, 1)}
    for op in kernel.walk():
        if isinstance(op, IfSrcOp | IfDstOp) and isinstance(op.pipe.owner, CreatePipeOp) and op.pipe.owner in found:
            found[op.pipe.owner].append(op)
    for pipe in found:
        others = [use.operation for use in pipe.result.uses if use.operation not in found[pipe]]
        if not all(isinstance(other, CopyOp) for other in others):
            found[pipe] = []
    return found


def _runs(sites: _Sites) -> list[list[CreatePipeOp]]:
    """Pipes one after the other that all do the same."""
    found: list[list[CreatePipeOp]] = []
    for pipe in sites:
        if found and _follow(found[-1][-1], sites[found[-1][-1]], pipe, sites[pipe]):
            found[-1].append(pipe)
        else:
            found.append([pipe])
    return found


def _follow(first: CreatePipeOp, ones: list[_Site], second: CreatePipeOp, others: list[_Site]) -> bool:
    """Return whether each branch of the second pipe comes right after the same one of the first."""
    if not ones or len(ones) != len(others):
        return False
    return all(_is_next(first, one, second, other) for one, other in zip(ones, others, strict=True))


def _is_next(first: CreatePipeOp, one: _Site, second: CreatePipeOp, other: _Site) -> bool:
    after = one.next_op
    while after is not None and not isinstance(after, IfSrcOp | IfDstOp) and is_side_effect_free(after):
        after = after.next_op
    same: dict[object, object] = {first.result: second.result}
    return (
        after is other
        and type(one) is type(other)
        and one.attributes == other.attributes
        and one.body.is_structurally_equivalent(other.body, same)  # pyright: ignore[reportArgumentType]
    )


def _families(run: list[CreatePipeOp]) -> list[list[CreatePipeOp]]:
    """Gather the pipes of a run in lines that are moved by one core each time, and join lines that are."""
    lines: list[tuple[_Step | None, list[CreatePipeOp]]] = []
    for pipe in run:
        for number in range(len(lines) - 1, -1, -1):
            known, line = lines[number]
            step = _step(line[-1], pipe)
            if step is not None and known in (None, step):
                lines[number] = step, [*line, pipe]
                break
            if any(_meet(pipe, other) for other in line):
                lines.append((None, [pipe]))
                break
        else:
            lines.append((None, [pipe]))
    families: list[list[CreatePipeOp]] = []
    for (step, _), group in groupby(lines, key=lambda line: (line[0], len(line[1]))):
        families += _joined(step, [line for _, line in group])
    return families


def _meet(one: CreatePipeOp, other: CreatePipeOp) -> bool:
    """Return whether the order of two pipes matters to a core, which is the source or a receiver of both."""
    return one.src == other.src or bool({*one.destinations}.intersection(other.destinations))


def _joined(step: _Step | None, lines: list[list[CreatePipeOp]]) -> list[list[CreatePipeOp]]:
    """Join the rows of a rectangle."""
    if step is None or (step[2] and step[1]):
        return lines  # Receivers of all of a rectangle have their loop over rows outside.
    below = step[1], step[0], step[2]
    found: list[list[CreatePipeOp]] = []
    for line in lines:
        if found and _step(found[-1][-len(line)], line[0]) == below:
            found[-1] += line
        else:
            found.append([*line])
    return found


def _step(one: CreatePipeOp, other: CreatePipeOp) -> _Step | None:
    """Return how the second pipe is moved; None if not by one core, or if a core would be on two ways at one end."""
    x, y = (b - a for a, b in zip(one.src, other.src, strict=True))
    if (x, y) not in ((1, 0), (0, 1)):
        return None
    first, last = one.dst_range
    if other.dst_range == (first, last):
        return None if one.has_loopback or other.has_loopback else (x, y, True)
    moved = tuple((place[0] + x, place[1] + y) for place in (first, last))
    is_thin = (last[0] - first[0] if x else last[1] - first[1]) == 0
    return (x, y, False) if other.dst_range == moved and is_thin else None


def _merge(family: list[CreatePipeOp], sites: _Sites) -> None:
    """Make one pipe of several."""
    first, last = family[0], family[-1]
    columns, rows = (b - a + 1 for a, b in zip(first.src, last.src, strict=True))
    gathers = first.dst_range == last.dst_range
    for pipe in family[1:]:
        for site in sites[pipe]:
            Rewriter.erase_op(site)
    made = CreatePipeOp(first.src, *first.dst_range, (columns, rows), gathers=gathers)
    made.result.name_hint = first.result.name_hint
    result = replace(first, made).result
    for pipe in family[1:]:
        Rewriter.erase_op(pipe)
    for site in sites[first]:
        if gathers and isinstance(site, IfDstOp):
            _loop_over_sources(site, made, result)


def _loop_over_sources(site: IfDstOp, pipe: CreatePipeOp, value: SSAValue) -> None:
    """Let the receivers do the same for each source, whose coordinates their copies name."""
    place: list[SSAValue] = []
    anchor: Operation = site
    for axis in (1, 0):
        start, count = pipe.src[axis], pipe.count[axis]
        if count == 1:
            place.insert(0, insert_before(anchor, constant(start, IndexType())).result)
            continue
        end = affine.YieldOp.get()
        end.location = site.location
        body = Block([end], arg_types=[IndexType()])
        loop = affine.ForOp.from_region([], [], [], [], start, start + count, Region(body))
        insert_before(anchor, loop)
        loop.body.block.args[0].name_hint = "from_" + "xy"[axis]
        place.insert(0, loop.body.block.args[0])
        anchor = end
    if anchor is not site:
        site.detach()
        insert_before(anchor, site)
    for copy in ops_of(site, CopyOp):
        if copy.far is value and copy.direction is Direction.READ:
            named = CopyOp(copy.source, copy.destination, (place[0], place[1]))
            replace(copy, named)
