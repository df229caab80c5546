"""`tlx-ws-split-k`: several programs take a part of a product's loop each, and the last one to be done adds them up.

For few tiles and a long loop: a program for each tile leaves most multiprocessors idle. Each part's sum goes to memory,
and an atomic addition counts the parts that are there: it releases what the program has stored, and acquires what the
others had. Who finds all others counted adds up all sums, in the order of the loop, so that the bits are the same in
each order of arrival. It sets the count back for the next launch. A part without turns adds zeros.

Before, for `%tile` = `tt.get_program_id x` and 4 parts:
```mlir
%sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 { ... }
tt.descriptor_store %c_desc[%m, %n], %sum
```
After, in Python:
```python
part = tl.program_id(0) % 4
tile = tl.program_id(0) // 4
share = tl.cdiv(n, 4)
begin = part * share
for k in range(begin, tl.minimum(begin + share, n)):
    ...
places = partials + tile * 16384 + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
tl.store(places + part * 4096, acc)
if tl.atomic_add(arrived + tile, 1, sem="acq_rel") == 3:
    acc = tl.load(places)
    acc += tl.load(places + 4096)
    ...
    tl.store(arrived + tile, 0)
    c_desc.store([m, n], acc)
```
The host gives `partials` and `arrived`, which is zero before the first launch. Launches that may run at the same time
must not have the same. Each group of warps that shares the rows has places and counts of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tlx_xdsl.analysis.module_attrs import cluster_dims, module_target
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.arith import CmpiOp, ExtSIOp
from tlx_xdsl.dialects.base import PointerType, scalar_type
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.dialects.tt.memory import GridDependencyLaunchDependentsOp
from tlx_xdsl.targets import Feature

from ..rewriting import OpT, Pass, constant, constant_integer, forward, insert_before, ops_of
from .accesses.arguments import HOST_MEMORY, HOST_VALUE, SPLIT, add_argument, add_conditions, new_name
from .refusal import refusal_at
from .slices import Slice, drop_idle, writes_memory
from .tasks_of import NOTE, REPLICAS

MOST_PARTS = 16
"""Parts of a loop: the last program reads the sums of all."""


@dataclass(frozen=True)
class SplitKPass(Pass):
    """Let several programs share the turns of a product's loop."""

    name = "tlx-ws-split-k"

    parts: int = 1
    """Programs for each program of the plain launch; with one the module stays as it is."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the kernels of the module in place.

        Raises WarpSpecializeRefusal for kernels that do more than add up products in one loop.
        """
        for function in ops_of(op, tt.FuncOp) if self.parts > 1 else ():
            if function.is_kernel:
                _check_launch(op, function, self.parts)
                _Split(function, _loop_of(function), self.parts).run()


# --- what is refused --------------------------------------------------------------------------------------------------


def _check_launch(module: ModuleOp, function: tt.FuncOp, parts: int) -> None:
    target = module_target(module)
    if parts > MOST_PARTS:
        raise refusal_at(function, f"a loop is split for up to {MOST_PARTS} programs")
    if target is not None and not target.has(Feature.WGMMA):
        raise refusal_at(function, "loops are split for GPUs with wgmma (sm_90a)")
    if cluster_dims(module) not in (None, (1, 1, 1)):
        raise refusal_at(function, "the loops of clusters are not split")
    if any(HOST_VALUE in each.data for each in function.arg_attrs or ()):
        raise refusal_at(function, "a loop is split where programs take one tile each")
    for op in function.walk():
        if isinstance(op, tt.GridDependencyWaitOp | GridDependencyLaunchDependentsOp):
            raise refusal_at(op, "a launch that overlaps the next one would count in the same place")


def _loop_of(function: tt.FuncOp) -> scf.ForOp:
    """Return the loop that is split.

    Raises WarpSpecializeRefusal, located at what stands in the way.
    """
    products = ops_of(function, tt.DotOp, tt.DotScaledOp)
    if not products:
        raise refusal_at(function, "there is no product whose loop could be split")
    product, loop = products[0], products[0].parent_op()
    if len(products) > 1:
        raise refusal_at(products[1], "a loop is split where it has the only product of the kernel")
    if not isinstance(loop, scf.ForOp) or loop.parent_op() is not function:
        raise refusal_at(product, "the loop of the product is not one that each program runs once")
    if len(loop.iter_args) != 1:
        raise refusal_at(loop, "it carries more than the sum of its products")
    if not _is_sum(product, loop):
        raise refusal_at(product, "a split loop only adds up products, in f32")
    if not _is_zero(loop.iter_args[0]):
        raise refusal_at(loop, "the sum of a split loop begins at zero")
    if (step := constant_integer(loop.step)) is None or step < 1:
        raise refusal_at(loop, "the step of a split loop is a constant")
    _check_effects(function, loop)
    return loop


def _is_sum(product: Operation, loop: scf.ForOp) -> bool:
    """True if a loop carries the sum of one product, which nothing else in it uses."""
    end, carried, result = loop.body.block.last_op, loop.body.block.args[1], product.results[0]
    if not isinstance(product, tt.DotOp) or end is None or len(shape_of_value(result)) != 2:
        return False
    total = end.operands[0]
    is_next = total is result and product.c is carried
    if isinstance(added := total.owner, arith.AddfOp):
        is_next = {*added.operands} == {carried, result} and _is_zero(product.c)
    return is_next and scalar_type(result.type) == f32 and all(e.has_one_use() for e in (carried, result, total))


def _check_effects(function: tt.FuncOp, loop: scf.ForOp) -> None:
    """Raise WarpSpecializeRefusal for what each part would do once more."""
    for op in function.body.walk():
        is_inside = op is not loop and loop.is_ancestor(op)
        top = op
        while (around := top.parent_op()) is not function and around is not None:
            top = around
        if writes_memory(op) and (is_inside or top.is_before_in_block(loop)):
            raise refusal_at(op, "each part of a split loop would do this once more")
        if isinstance(op, scf.WhileOp) or (op.regions and is_inside):
            raise refusal_at(op, "a split loop has neither branches nor loops in its turns, nor is a 'while' beside it")


def _is_zero(value: SSAValue) -> bool:
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
        return False
    return op.value.is_splat() and op.value.get_values()[0] == 0


# --- the rewriting ----------------------------------------------------------------------------------------------------


class _Split:
    def __init__(self, function: tt.FuncOp, loop: scf.ForOp, parts: int):
        self.function, self.loop, self.parts = function, loop, parts
        self.shape = list(shape_of_value(loop.results[0]))
        copies = function.attributes.get(REPLICAS)
        self.replicas = copies.value.data if isinstance(copies, IntegerAttr) else 1

    def run(self) -> None:
        ops = list(self.function.body.blocks[0].ops)
        rest = ops[ops.index(self.loop) + 1 :]
        early = _early(rest, self.loop)
        late = [op for op in rest[:-1] if op not in early]
        part, tile = self._numbers()
        self._share_turns(part)
        for op in late:
            op.detach()
        self._add_up(rest[-1], late, part, tile)
        drop_idle(self.function.body.blocks[0])
        self.function.attributes[SPLIT] = IntegerAttr(self.parts, i32)

    def _numbers(self) -> tuple[SSAValue, SSAValue]:
        """Let the program's numbers be those of the plain launch; return the number of the part, and of the tile."""
        function = self.function
        known = ops_of(function, tt.GetProgramIdOp, tt.GetNumProgramsOp)
        axes = sorted({0, *(op.axis.value.data for op in known)})
        add_conditions(function, [f"grid[{axis}] == 1" for axis in range(3) if axis not in axes])
        start = function.body.blocks[0].first_op
        assert start is not None, "a function ends in an operation"
        write = _Writer(start, function)
        count, program = write.number(self.parts), write.value(tt.GetProgramIdOp(0), "program")
        part = write.value(arith.RemSIOp(program, count), "part")
        numbers: dict[tuple[type[Operation], int], SSAValue] = {}
        for axis in axes:
            for kind in (tt.GetProgramIdOp, tt.GetNumProgramsOp):
                name = next((op.result.name_hint for op in known if type(op) is kind and _axis(op) == axis), None)
                number = write.value(kind(axis), name) if axis or kind is tt.GetNumProgramsOp else program
                numbers[kind, axis] = number if axis else write.value(arith.DivSIOp(number, count), name or "tile")
        tile = numbers[tt.GetProgramIdOp, axes[-1]]
        for axis in reversed(axes[:-1]):
            rows = write.value(arith.MuliOp(tile, numbers[tt.GetNumProgramsOp, axis]))
            tile = write.value(arith.AddiOp(rows, numbers[tt.GetProgramIdOp, axis]), "tile")
        for op in known:
            forward(op, numbers[type(op), _axis(op)])
        return part, tile

    def _share_turns(self, part: SSAValue) -> None:
        """Let the loop take the turns of one part: as many as each other, or fewer for the last ones."""
        loop = self.loop
        loop.attributes[NOTE] = StringAttr(f"{self.parts} programs share these turns, and add up their sums")
        step = constant_integer(loop.step)
        assert step is not None, "loops with another step are refused"
        low = None if constant_integer(loop.lb) == 0 else loop.lb
        write = _Writer(loop, loop)
        span = loop.ub if low is None else write.value(arith.SubiOp(loop.ub, low))
        most = self.parts * step
        span = write.value(arith.AddiOp(span, write.number(most - 1)))
        share = write.value(arith.DivSIOp(span, write.number(most)))
        if step > 1:
            share = write.value(arith.MuliOp(share, loop.step))
        if loop.ub.name_hint is None:
            loop.ub.name_hint = "turns" if step == 1 else "stop"
        share.name_hint = "share"
        begin = write.value(arith.MuliOp(part, share))
        if low is not None:
            begin = write.value(arith.AddiOp(low, begin))
        begin.name_hint = "begin"
        end = write.value(arith.MinSIOp(write.value(arith.AddiOp(begin, share)), loop.ub), "end")
        loop.operands = [begin, end, *loop.operands[2:]]

    def _add_up(self, anchor: Operation, late: Sequence[Operation], part: SSAValue, tile: SSAValue) -> None:
        """Store the sum before `anchor`, and let the last part do what is `late` with the sum of all."""
        size = prod(self.shape)
        tiles = "grid[0] * grid[1] * grid[2]"
        partials = self._memory("partials", f32, f"{tiles} * {self.parts * self.replicas * size}", is_zero=False)
        arrived = self._memory("arrived", i32, f"{tiles} * {self.replicas}", is_zero=True)
        write = _Writer(anchor, self.loop)
        own = tile
        if self.replicas > 1:
            first = write.value(arith.MuliOp(tile, write.number(self.replicas)))
            own = write.value(arith.AddiOp(first, write.value(ReplicaIdOp(), "group")), "own")
        wide = write.value(ExtSIOp(own, i64))
        wide = write.value(arith.MuliOp(wide, write.value(constant(self.parts * size, i64))))
        places = write.places(write.value(tt.AddPtrOp(partials, wide)), self.shape)
        total = self.loop.results[0]
        store = tt.StoreOp(write.moved(places, write.value(arith.MuliOp(part, write.number(size)))), total)
        store.attributes[NOTE] = StringAttr("the part that is done last finds the sums of all in memory")
        write.add(store)
        counter = write.value(tt.AddPtrOp(arrived, own), "counter")
        before = write.value(_count(counter, write.number(1), write.value(constant(1, i1))), "before")
        is_last = write.value(CmpiOp("eq", before, write.number(self.parts - 1)), "is_last")
        ending = scf.YieldOp()
        write.add(scf.IfOp(is_last, [], Region(Block([ending]))))
        write = _Writer(ending, self.loop)
        back = write.add(tt.StoreOp(counter, write.number(0)))
        back.attributes[NOTE] = StringAttr(
            "ready for the next launch; sums are added in the order of the loop, with the same bits in each run"
        )
        sums = write.value(tt.LoadOp(places), "acc")
        for each in range(1, self.parts):
            loaded = write.value(tt.LoadOp(write.moved(places, write.number(each * size))), "loaded")
            sums = write.value(arith.AddfOp(sums, loaded), "acc")
        total.replace_uses_with_if(sums, lambda use: use.operation is not store)
        for op in late:
            insert_before(ending, op, located_at=op)

    def _memory(self, name: str, element: Attribute, count: str, *, is_zero: bool) -> SSAValue:
        """Add an argument: memory that the host gives."""
        held = DictionaryAttr({"count": StringAttr(count), "zero": BoolAttr.from_bool(is_zero)})
        attributes = DictionaryAttr({HOST_MEMORY: held, "tt.divisibility": IntegerAttr(16, i32)})
        entry, type_ = self.function.body.blocks[0], PointerType.get(element)
        name = new_name(self.function, name)
        return add_argument(self.function, len(entry.args), name, type_, attributes, self.function.location)


class _Writer:
    """Inserts operations before one of a function."""

    def __init__(self, anchor: Operation, like: Operation):
        self._anchor, self._like = anchor, like

    def add(self, op: OpT) -> OpT:
        return insert_before(self._anchor, op, located_at=self._like)

    def value(self, op: Operation, name: str | None = None) -> SSAValue:
        result = self.add(op).results[0]
        result.name_hint = name
        return result

    def number(self, number: int) -> SSAValue:
        return self.value(constant(number, i32))

    def places(self, first: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Insert the pointers to a matrix that begins at a pointer."""
        columns = shape[1]
        row, column = (self._range(shape, axis) for axis in (0, 1))
        many = self.value(tt.SplatOp(operands=[self.number(columns)], result_types=[row.type]))
        row = self.value(arith.MuliOp(row, many))
        row, column = (
            self.value(tt.BroadcastOp(operands=[each], result_types=[TensorType(i32, shape)])) for each in (row, column)
        )
        pointers = self.value(tt.SplatOp(operands=[first], result_types=[TensorType(first.type, shape)]))
        return self.value(tt.AddPtrOp(pointers, self.value(arith.AddiOp(row, column))), "places")

    def _range(self, shape: Sequence[int], axis: int) -> SSAValue:
        size = shape[axis]
        ends = {"start": IntegerAttr(0, i32), "end": IntegerAttr(size, i32)}
        found = self.value(tt.MakeRangeOp(properties=ends, result_types=[TensorType(i32, [size])]))
        type_ = TensorType(i32, [size, 1] if axis == 0 else [1, size])
        properties = {"axis": IntegerAttr(1 - axis, i32)}
        return self.value(tt.ExpandDimsOp(operands=[found], properties=properties, result_types=[type_]))

    def moved(self, places: SSAValue, offset: SSAValue) -> SSAValue:
        """Insert the pointers so many elements further."""
        type_ = TensorType(i32, shape_of_value(places))
        return self.value(tt.AddPtrOp(places, self.value(tt.SplatOp(operands=[offset], result_types=[type_]))))


def _axis(op: tt.GetProgramIdOp | tt.GetNumProgramsOp) -> int:
    return op.axis.value.data


def _early(rest: Sequence[Operation], loop: scf.ForOp) -> set[Operation]:
    """Return what all parts do after the loop: loads that a producer may do ahead, and what these need.

    Raises WarpSpecializeRefusal where such a load depends on the sum.
    """
    loads = [op for op in rest if isinstance(op, tt.DescriptorLoadOp)]
    needed = Slice(loads)
    if loop in needed.ops:
        raise refusal_at(loads[0], "its address depends on the sum of a split loop")
    return {op for op in rest if op in needed.ops}


def _count(counter: SSAValue, one: SSAValue, true: SSAValue) -> Operation:
    return tt.AtomicRMWOp(
        operands=[counter, one, true],
        properties={
            "atomic_rmw_op": tt.RMWOp.ADD.attr,
            "sem": tt.MemSemantic.ACQUIRE_RELEASE.attr,
            "scope": tt.MemSyncScope.GPU.attr,
        },
        result_types=[i32],
    )
