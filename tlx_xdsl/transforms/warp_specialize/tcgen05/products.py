"""`tlx-ws-tensor-memory`: products of consumers in Blackwell's tensor cores, with their results in tensor memory.

On GPUs with tcgen05 a product of blocks that were loaded from rings reads these where they lie; a consumer issues it,
and goes on. Results stay in tensor memory: loops carry them there, products add to them, and threads load them, after
a wait for the product, where they compute with them. The tensor cores give the slots of rings back themselves.
Operands that threads compute go to tensor memory (A), or to shared memory.

Before:
```mlir
%acc = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32>) : i32 {
  ttng.wait_barrier %full_slot, %phase, %true : ...
  %x = ttg.local_load %a : !ttg.memdesc<128x64xf16, ...> -> tensor<128x64xf16>
  %y = ttg.local_load %b : !ttg.memdesc<64x128xf16, ...> -> tensor<64x128xf16>
  ttng.arrive_barrier %empty_slot, 1 : ...
  %next = tt.dot %x, %y, %sum : ... -> tensor<128x128xf32>
  scf.yield %next : tensor<128x128xf32>
}
```
After, in Python:
```python
for k in range(n):
    stage, phase = tlx.get_bufidx_phase(k, 3)
    tlx.barrier_wait(full[stage], phase)
    tlx.async_dot(a[stage], b[stage], acc_sum[0], use_acc=k > 0, mBarriers=[empty[stage]])
tlx.tcgen05_commit(acc_done[0])
tlx.barrier_wait(acc_done[0], 0)
acc = tlx.local_load(acc_sum[0])
```
A product that tcgen05 can't do is refused, and so is one in a `while`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import element_bits, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.ttg import MemDescType, columns_of
from tlx_xdsl.targets import Feature, Target

from ...rewriting import Pass, insert_before, ops_of
from ..products.dot_operands import is_zero
from ..refusal import refusal_at
from ..slices import drop_idle
from ..tasks import RESERVED_BYTES
from ..tasks_of import NOTE, copies_of
from .accumulators import Accumulator, Accumulators
from .memory import barriers_before, before_tasks, capture
from .operands import (
    WARP_GROUP,
    Operands,
    accumulator_type,
    fits_tensor_memory,
    operand_type,
    operands_of,
    why_no_tcgen05,
)
from .releases import Releases
from .sharing import shared, span_of, span_of_operand
from .writer import Place, Plan, Writer

_Key = tuple[tt.DotOp, str]
"""A product, and which of its operands."""


@dataclass(frozen=True)
class TensorMemoryPass(Pass):
    """Let Blackwell's tensor cores do the products of partitions."""

    name = "tlx-ws-tensor-memory"

    accumulators: int = 0
    """Buffers of a sum that an outer loop makes in each turn; 0 for two where tensor memory has room."""

    def run(self, op: ModuleOp) -> None:
        """Handle each partition by itself.

        Raises WarpSpecializeRefusal, located at a product that tcgen05 can't do.
        """
        target = module_target(op)
        if target is None or not target.has(Feature.TCGEN05):
            return
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for index in range(len(tasks.partitions.partition_regions)):
                _Partition(self, target, tasks, index).convert()


class _Partition:
    """The conversion of a partition."""

    def __init__(self, options: TensorMemoryPass, target: Target, tasks: ttg.WarpSpecializeOp, index: int):
        self.options, self.target, self.tasks, self.index = options, target, tasks, index
        self.copies = copies_of(tasks, index)

    @property
    def region(self) -> Region:
        """The partition's code."""
        return self.tasks.partitions.partition_regions[self.index]

    def convert(self) -> None:
        """Convert all products, or none where there is none."""
        _add_in_products(self.region)
        dots = [op for op in self.region.walk() if isinstance(op, tt.DotOp)]
        if not dots:
            return
        for dot in dots:
            self._check(dot)
        plan = self._plan(dots)
        region = self.region
        written = Writer(plan).region(region)
        block = written.block
        written.detach_block(block)
        old = region.block
        region.detach_block(old)
        region.add_block(block)
        old.erase(safe_erase=False)
        drop_idle(block)
        self._have_whole_warp_groups()

    def _check(self, dot: tt.DotOp) -> None:
        if (reason := why_no_tcgen05(dot)) is not None:
            raise refusal_at(dot, f"the tensor cores can't do this product: {reason}")
        parent = dot.parent_op()
        while isinstance(parent, scf.ForOp | scf.IfOp):
            parent = parent.parent_op()
        if not isinstance(parent, ttg.WarpSpecializePartitionsOp):
            name = "a 'while' loop" if isinstance(parent, scf.WhileOp) else "other code"
            raise refusal_at(dot, f"its result would have to stay in tensor memory across {name}")

    # --- decisions -----------------------------------------------------------------------------------------------

    def _plan(self, dots: list[tt.DotOp]) -> Plan:
        operands = {dot: operands_of(dot) for dot in dots}
        releases = Releases(self.region)
        while True:
            accumulators = Accumulators(self.region, dots, [dot for dot in dots if operands[dot].are_stored])
            needed = releases.settle(operands, accumulators)
            if not needed:
                break
            operands = {dot: _without(found, needed) for dot, found in operands.items()}
            releases = Releases(self.region)
        depths = {each: self._depth(each, accumulators) for each in accumulators.all}
        stored = [
            (dot, name)
            for dot in dots
            for name, place in (("a", operands[dot].a), ("b", operands[dot].b))
            if place is None
        ]
        sums = shared([(each, each.dots[0].d.type, span_of(each, accumulators)) for each in accumulators.all])
        spans = {dot: span_of_operand(dot, accumulators) for dot, _ in stored}
        blocks = {
            name: shared([(key, _block(key).type, spans[key[0]]) for key in stored if key[1] == name]) for name in "ab"
        }
        in_tensor_memory = [keys for keys in blocks["a"] if fits_tensor_memory(_block(keys[0]))]
        self._fit(sums, depths, in_tensor_memory)
        places: dict[Accumulator, Place] = {}
        for group in sums:
            buffers = self._sums(group, depths[group[0]])
            for each in group:
                places[each] = Place(buffers, self._done(each, depths[each]), depths[each])
        stores: dict[tuple[tt.DotOp, str], SSAValue] = {}
        for keys in [*blocks["a"], *blocks["b"]]:
            stores.update(dict.fromkeys(keys, self._operand_buffer(keys[0], in_tensor_memory=keys in in_tensor_memory)))
        if len(in_tensor_memory) < len(blocks["a"]) + len(blocks["b"]):
            self._check_shared_memory(dots[0])
        return Plan(accumulators, operands, releases, places, stores, self.copies)

    def _depth(self, accumulator: Accumulator, accumulators: Accumulators) -> int:
        """Two buffers for a sum that a loop around makes in each turn: one is made while threads use the other."""
        if len(accumulator.loops) != 1 or accumulator.signals_each or self.options.accumulators == 1:
            return 1
        loop, position = accumulator.loops[0]
        is_in_loop = isinstance(loop.parent_op(), scf.ForOp)
        is_sum = all(dot.parent is loop.body.block for dot in accumulator.dots)
        return 2 if is_in_loop and is_sum and accumulators.is_fresh(loop, position) else 1

    def _fit(
        self, sums: Sequence[Sequence[Accumulator]], depths: dict[Accumulator, int], blocks: list[list[_Key]]
    ) -> None:
        """Make less use of tensor memory until all has room in it."""
        limit = self.target.tmem_columns

        def columns() -> int:
            types = [accumulator_type(group[0].dots[0].d.type, depths[group[0]] * self.copies) for group in sums]
            types += [operand_type(_block(keys[0]).type, self.copies, in_tensor_memory=True) for keys in blocks]
            return sum(map(columns_of, types))

        if columns() > limit:
            depths.update(dict.fromkeys(depths, 1))
        while columns() > limit and blocks:
            blocks.pop()
        if (needed := columns()) > limit:
            first = sums[0][0].dots[0]
            raise refusal_at(first, f"its products need {needed} columns of tensor memory, there are {limit}")

    def _sums(self, group: Sequence[Accumulator], depth: int) -> SSAValue:
        """Allocate the buffers of accumulators that share them."""
        first = group[0].dots[0]
        type_ = accumulator_type(first.d.type, depth * self.copies)
        made = ttng.TMEMAllocOp(operands=[None], result_types=[type_, None])
        array = before_tasks(self.tasks, made, first).results[0]
        array.name_hint = f"{_name(group[0])}_{'sum' if group[0].loops else 'tile'}"
        if depth > 1:
            note = "two sums take turns, so that the products of one run beside the work with the other"
            made.attributes[NOTE] = StringAttr(note)
        return capture(self.tasks, self.index, array)

    def _done(self, accumulator: Accumulator, depth: int) -> SSAValue:
        barriers = barriers_before(self.tasks, depth * self.copies, f"{_name(accumulator)}_done", accumulator.dots[0])
        return capture(self.tasks, self.index, barriers)

    def _operand_buffer(self, key: _Key, *, in_tensor_memory: bool) -> SSAValue:
        block = _block(key)
        type_ = operand_type(block.type, self.copies, in_tensor_memory=in_tensor_memory, is_b=key[1] == "b")
        made: Operation
        if in_tensor_memory:
            made = ttng.TMEMAllocOp(operands=[None], result_types=[type_, None])
        else:
            made = ttg.LocalAllocOp(operands=[None], result_types=[type_])
        array = before_tasks(self.tasks, made, key[0]).results[0]
        array.name_hint = f"{block.name_hint or 'operand'}_buffer"
        return capture(self.tasks, self.index, array)

    def _check_shared_memory(self, dot: tt.DotOp) -> None:
        """Refuse what shared memory has no room for."""
        function = self.tasks.parent_op()
        assert function is not None
        needed = 0
        for op in function.walk():
            match op:
                case ttg.LocalAllocOp() if op.result.type.element_type != i64:
                    needed += _bytes(op.result.type)
                case tt.DescriptorStoreOp():
                    needed += _bytes_of_block(op.src.type) * self.copies
                case _:
                    pass
        limit = self.target.shared_bytes - RESERVED_BYTES
        if needed > limit:
            need = f"{needed:,} bytes of shared memory"
            raise refusal_at(dot, f"the rings and the operands of its products need {need}, {limit:,} are there")

    def _have_whole_warp_groups(self) -> None:
        """Give the task 4 or 8 warps: fewer don't reach all of tensor memory."""
        warps = list(self.tasks.num_warps)
        warps[self.index] = min(max(warps[self.index], WARP_GROUP), 2 * WARP_GROUP)
        self.tasks.partition_num_warps = DenseArrayBase.from_list(i32, warps)


def _block(key: _Key) -> SSAValue:
    dot, name = key
    return dot.a if name == "a" else dot.b


def _name(accumulator: Accumulator) -> str:
    return next((dot.d.name_hint for dot in reversed(accumulator.dots) if dot.d.name_hint), "product")


def _without(found: Operands, needed: Iterable[ttg.LocalLoadOp]) -> Operands:
    """The operands, with those stored whose loads threads must do."""
    loads = set(needed)
    return Operands(*(None if place is None or place.load in loads else place for place in (found.a, found.b)))


def _bytes(type_: MemDescType) -> int:
    return prod(type_.shape) * type_.element_bits // 8


def _bytes_of_block(block: Attribute) -> int:
    return prod(shape_of_tensor(block)) * element_bits(scalar_type(block)) // 8


def _add_in_products(region: Region) -> None:
    """Let a product whose only use is a sum add to the other summand itself."""
    for dot in [op for op in region.walk() if isinstance(op, tt.DotOp)]:
        uses = list(dot.d.uses)
        if len(uses) != 1 or not is_zero(dot.c) or dot.max_num_imprecise_acc.value.data:
            continue
        op = uses[0].operation
        if not isinstance(op, AddfOp) or op.parent is not dot.parent or op.lhs is op.rhs:
            continue
        other: Attribute = dot.d.type
        summand = op.rhs if op.lhs is dot.d else op.lhs
        if summand.type != other:
            continue
        made = insert_before(op, dot.clone(), located_at=dot)
        made.operands[2] = summand
        made.d.name_hint = op.result.name_hint or dot.d.name_hint
        op.result.replace_all_uses_with(made.d)
        Rewriter.erase_op(op)
        Rewriter.erase_op(dot)
