"""`tlx-ws-make-persistent`: a program does the work of several, one after the other.

The kernel's body becomes that of a loop over tiles: `tile` is the number of a program of the plain launch, counted as
the hardware does, x fastest. The sizes of that grid are new arguments; the launch's own grid may have any size. The
next tile's loads can then be under way while this one's results are stored. What follows from the arguments alone
stays before the loop.

Before:
```mlir
tt.func public @f(%n: i32) {
  %m = tt.get_program_id x : i32
  ...
```
After:
```mlir
tt.func public @f(%n: i32, %grid_x: i32 {tlx.host_value = "grid[0]"}) {
  %first = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  scf.for %tile = %first to %grid_x step %programs : i32 {
    ...
```
A kernel whose programs may wait for each other stays as it is: one that waits might run before the other.

With `groups`, a turn of the loop is a program for each of so many groups of warps (`joined_programs.py`), along the
axis whose programs load the same blocks; where there is none, there is one group.

With `cluster`, that many CTAs take tiles that follow each other, and one without a tile computes what the last one does
and writes nothing: all turn equally often, as `tlx-ws-share-loads` needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith as upstream, scf
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr, UnitAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.integers.symbols import AXES
from tlx_xdsl.analysis.module_attrs import cluster_dims, set_cluster
from tlx_xdsl.analysis.structure.sums import Sums
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import as_tensor, is_set
from tlx_xdsl.dialects.llvm import AssumeOp
from tlx_xdsl.dialects.tlx import ClusterCTARankOp
from tlx_xdsl.text.diagnostics import report_remark
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of

from .accesses.arguments import HOST_VALUE, add_argument, add_conditions, new_name
from .accesses.facts import Facts
from .joined_programs import joined_size, own_program, program_of_group, shared_axis
from .refusal import refusal_at
from .tasks_of import NOTE, TILES

_COORDINATES = (tt.GetProgramIdOp, tt.GetNumProgramsOp)
_ALONE = (
    tt.StoreOp, tt.DescriptorLoadOp, tt.DescriptorStoreOp, tt.DescriptorReduceOp, tt.DescriptorGatherOp,
    tt.DescriptorScatterOp, tt.PrintOp, tt.AssertOp, AssumeOp,
)  # fmt: skip
"""Operations that have an effect, and wait for no other program."""


@dataclass(frozen=True)
class MakePersistentPass(Pass):
    """Let the programs of all kernels of a module take several tiles each."""

    name = "tlx-ws-make-persistent"

    groups: int = 1
    """Groups of warps, each of which does a program of the plain launch at a time."""
    cluster: int = 1
    """CTAs of a cluster, which take tiles that follow each other."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises WarpSpecializeRefusal for a kernel that has clusters already, or whose groups have programs of their own.
        """
        for function in ops_of(op, tt.FuncOp):
            if self.cluster > 1 and (self.groups > 1 or cluster_dims(op) is not None):
                raise refusal_at(function, "clusters are for programs that one CTA does, and where there are none yet")
            if function.is_kernel and len(function.body.blocks) == 1:
                _make_persistent(function, self.groups, self.cluster)
        set_cluster(op, (self.cluster, 1, 1))


def _make_persistent(function: tt.FuncOp, groups: int, cluster: int) -> None:
    coordinates = ops_of(function, *_COORDINATES)
    if not coordinates or _is_persistent(function):
        return
    if (waiting := next((op for op in function.body.walk() if not _is_alone(op)), None)) is not None:
        waiting.attributes[NOTE] = StringAttr("each program takes one tile, because it may wait for another program")
        return
    axes = sorted({op.axis.value.data for op in coordinates})
    add_conditions(function, [f"grid[{axis}] == 1" for axis in range(3) if axis not in axes])
    sizes = {axis: _grid_size(function, axis) for axis in axes}
    shared = shared_axis(function) if groups > 1 else None
    if groups > 1 and shared is None:
        report_remark(function, "one group of warps has a program: those that follow each other load nothing alike")
    end = function.body.blocks[0].last_op
    assert end is not None, "a function ends in a return"
    steps = {axis: joined_size(end, size, groups) if axis == shared else size for axis, size in sizes.items()}
    anchor, tile = _loop(function, list(steps.values()), cluster)
    numbers = _numbers(tile, steps, anchor)
    if shared is not None:
        numbers[shared] = program_of_group(function, anchor, numbers[shared], sizes[shared], groups)
    _number(coordinates, tile, sizes, numbers)


def _is_persistent(function: tt.FuncOp) -> bool:
    """True if a loop of the kernel begins at the program's number already."""
    sums = Sums()
    ids = [sums.of(op.result) for op in ops_of(function, tt.GetProgramIdOp)]
    return any(sums.of(loop.lb) in ids for loop in ops_of(function, scf.ForOp))


def _is_alone(op: Operation) -> bool:
    """True if an operation can't make a program wait for another one."""
    match op:
        case tt.LoadOp():
            # A loop may load again and again until another program has stored.
            return not is_set(op, "isVolatile") and not _is_in_while(op)
        case tt.AtomicRMWOp():
            return not op.result.uses
        case scf.ForOp() | scf.IfOp() | scf.WhileOp() | scf.YieldOp() | scf.ConditionOp() | tt.ReturnOp():
            return True
        case _:
            return isinstance(op, _ALONE) or is_side_effect_free(op)


def _is_in_while(op: Operation) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.WhileOp):
        around = around.parent_op()
    return around is not None


def _grid_size(function: tt.FuncOp, axis: int) -> SSAValue:
    name = new_name(function, f"grid_{AXES[axis]}")
    attributes = DictionaryAttr({HOST_VALUE: StringAttr(f"grid[{axis}]")})
    entry = function.body.blocks[0]
    return add_argument(function, len(entry.args), name, i32, attributes, function.location)


def _loop(function: tt.FuncOp, sizes: Sequence[SSAValue], cluster: int) -> tuple[Operation, SSAValue]:
    """Move the body into a loop over tiles; return the first operation of its body, and the number of a tile."""
    entry = function.body.blocks[0]
    end = entry.last_op
    assert end is not None, "a function ends in a return"
    facts = Facts(function, Sums())
    moved = [op for op in entry.ops if op is not end and not _stays(op, facts)]
    first = insert_before(end, tt.GetProgramIdOp(0)).result
    programs = insert_before(end, tt.GetNumProgramsOp(0)).result
    first.name_hint, programs.name_hint = "first", "programs"
    total = sizes[0]
    for size in sizes[1:]:
        total = insert_before(end, upstream.MuliOp(total, size)).result
        total.name_hint = "tiles"
    turns = total
    if cluster > 1:
        count = insert_before(end, constant(cluster, i32)).result
        first, programs = (insert_before(end, upstream.DivSIOp(each, count)).result for each in (first, programs))
        turns = joined_size(end, total, cluster)
        first.name_hint, programs.name_hint, turns.name_hint = "cluster", "clusters", "joined"
    body = Block(arg_types=[i32])
    loop = insert_before(end, scf.ForOp(first, turns, programs, [], Region(body)))
    loop.attributes[TILES] = UnitAttr()
    loop.attributes[NOTE] = StringAttr("as many programs run as fit on the GPU, and each takes tiles in turn")
    tile = body.args[0]
    tile.name_hint = "tile"
    for op in moved:
        op.detach()
        body.add_op(op)
    ending = scf.YieldOp()
    ending.location = end.location
    body.add_op(ending)
    anchor = body.first_op
    assert anchor is not None
    if cluster > 1:
        rank = insert_before(loop, ClusterCTARankOp(result_types=[i32])).result
        rank.name_hint, tile.name_hint = "rank", "joined_tile"
        tile = own_program(anchor, tile, rank, total, cluster)
    return anchor, tile


def _stays(op: Operation, facts: Facts) -> bool:
    """True for a number that is the same for all tiles."""
    is_number = bool(op.results) and all(as_tensor(result.type) is None for result in op.results)
    is_constant = isinstance(op, upstream.ConstantOp)
    return is_constant or (is_number and all(facts.value_is_of_launch(result) for result in op.results))


def _numbers(tile: SSAValue, sizes: dict[int, SSAValue], anchor: Operation) -> dict[int, SSAValue]:
    """Insert the numbers along each axis that a tile has."""
    numbers: dict[int, SSAValue] = {}
    left, axes = tile, list(sizes)
    for axis in axes[:-1]:
        numbers[axis] = insert_before(anchor, upstream.RemSIOp(left, sizes[axis])).result
        left = insert_before(anchor, upstream.DivSIOp(left, sizes[axis])).result
    numbers[axes[-1]] = left
    return numbers


def _number(
    coordinates: Sequence[Operation], tile: SSAValue, sizes: dict[int, SSAValue], numbers: dict[int, SSAValue]
) -> None:
    """Let the program's numbers be those of the tile."""
    for op in coordinates:
        assert isinstance(op, _COORDINATES)
        values = numbers if isinstance(op, tt.GetProgramIdOp) else sizes
        value = values[op.axis.value.data]
        op.result.replace_all_uses_with(value)
        if value is not tile and isinstance(op, tt.GetProgramIdOp):
            value.name_hint = op.result.name_hint
        Rewriter.erase_op(op)
