"""`tlx-ws-form-tasks`: a producer that loads blocks by TMA ahead of consumers that compute with them.

The loads through descriptors whose addresses follow from arguments, program ids and loops go to a producer, the default
task. It runs the loops and branches around them and nothing else. What is left is the consumer. Blocks go through
rings of buffers in shared memory with a barrier for each full and each empty slot.

Before:
```mlir
%acc = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32>) : i32 {
  %i = arith.muli %k, %c64 : i32
  %a = tt.descriptor_load %a_desc[%m, %i] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
  %b = tt.descriptor_load %b_desc[%i, %n] : !tt.tensordesc<64x128xf16> -> tensor<64x128xf16>
  %next = tt.dot %a, %b, %sum : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
  scf.yield %next : tensor<128x128xf32>
}
```
After, in Python:
```python
with tlx.async_tasks():
    with tlx.async_task("default"):
        for k in range(n):
            stage, phase = tlx.get_bufidx_phase(k, 3)
            tlx.barrier_wait(empty[stage], phase ^ 1)
            tlx.barrier_expect_bytes(full[stage], 32768)
            tlx.async_descriptor_load(a_desc, a[stage], [m, k * 64], full[stage])
            tlx.async_descriptor_load(b_desc, b[stage], [k * 64, n], full[stage])
    with tlx.async_task(num_warps=8):
        for k in range(n):
            stage, phase = tlx.get_bufidx_phase(k, 3)
            tlx.barrier_wait(full[stage], phase)
            a_tile, b_tile = tlx.local_load(a[stage]), tlx.local_load(b[stage])
            tlx.barrier_arrive(empty[stage])
            acc = tl.dot(a_tile, b_tile, acc)
```
Blocks that TMA can't load are copied by the producer's threads (`thread_copies.py`):
```python
tlx.async_load_commit_group([tlx.async_load(a_pointers, a[stage], mask)])
tlx.async_load_wait_group(0)
tlx.fence_async_shared()
tlx.barrier_arrive(full[stage])
```
The tensor cores read through another proxy than threads write by, so the fence stands between the two. How many of
these copies are in flight is left to `tlx-ws-delay-arrivals`.

In loops whose consumers fence, because they store or hand operands over through shared memory, the producer's threads
load numbers and small rows, too: a fence waits for all loads of its own warp, also for those of the next turn.

A kernel that also writes what it loads, through the same argument, is refused: the producer would load too early.
Memory of different arguments is taken not to overlap, as stock Triton's software pipelining does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TypeGuard

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, TensorType, i1, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import accesses_of, element_bits, enclosing, is_set, layout_attr, layout_of, tensor_type
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.scf import LOOPS
from tlx_xdsl.dialects.tt import descriptor_type
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.layouts.shared import unswizzled_layout
from tlx_xdsl.targets import Feature, target_named

from ..captures import isolate
from ..rewriting import Pass, constant
from .copying import Code, Copier, Point
from .early_loads import check_early, may_come_early
from .growth import growth
from .prefetch_loads import MOST_ELEMENTS
from .refusal import refusal_at
from .rings import SMEM, CountKey, Filling, Load, Ring, depends_on_replica, fillings_of, is_row, rings_of, row_type
from .slices import Slice, drop_idle, is_only_read, writes_memory
from .stores.pieces import buffers_of_pieces
from .tasks_of import NOTE, REPLICAS
from .thread_copies import carries_replica, copies_of_replicas, note_copy, note_stays, why_no_copy

MOST_REGISTERS = {8: 240, 12: 160}
"""Registers of each thread of two or three warp groups, by their warps, beside a producer that keeps 24 or 32: together
those of a multiprocessor."""
REGISTERS_BESIDE_COPIES = {8: 216, 12: 144}
"""The same beside a producer whose threads copy: it keeps 72 or 80, and with 24 it would spill addresses."""
MOST_SLOTS = 4
"""Slots of a ring: more hide no more latency on an H200."""
RESERVED_BYTES = 4096
"""Shared memory for barriers, captures, reductions between warps, and alignment."""


@dataclass(frozen=True)
class FormTasksPass(Pass):
    """Split a plain kernel into a producer and a consumer."""

    name = "tlx-ws-form-tasks"

    depth: int = 0
    """Slots of rings that loops fill; 0 for as many as shared memory holds, at most four."""
    outer_depth: int = 0
    """Slots of the other rings; 0 for two where the next tile's blocks take none of those slots, and one otherwise."""
    num_warps: int = 0
    """Warps of a consumer; 0 for 4 where the rows are split, and those of the kernel otherwise."""
    registers: int = 0
    """Registers of each thread of a consumer; 0 for 240 or 160 where there are two or three warp groups on Hopper."""

    overlay: bool = False
    """Results will be staged in the memory of rings that are done."""
    pieces: int = 1
    """Pieces in which results will be staged one after the other."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the kernel in place.

        Raises WarpSpecializeRefusal, located in the kernel, where there is nothing that a producer could do.
        """
        functions = [function for function in op.ops if isinstance(function, tt.FuncOp) and function.is_kernel]
        for function in functions:
            if any(isinstance(inner, ttg.WarpSpecializeOp) for inner in function.walk()):
                continue
            _Former(self, op, function).run()


class _Former:
    def __init__(self, options: FormTasksPass, module: ModuleOp, function: tt.FuncOp):
        self.options, self.module, self.function = options, module, function
        if len(function.body.blocks) != 1:
            end = function.body.blocks[0].last_op
            raise refusal_at(end or function, "the kernel returns early: put what follows into an 'if'")
        self.body = function.body.block
        copies = function.attributes.get(REPLICAS)
        self.replicas = copies.value.data if isinstance(copies, IntegerAttr) else 1
        self.replica_seen: dict[SSAValue, bool] = {}

    def run(self) -> None:
        loads = self._loads()
        copied: dict[Operation, Sequence[tt.LoadOp]] = {
            load: self._copied(load) for load in loads if isinstance(load, tt.LoadOp) and not is_row(load)
        }
        by_replica: set[Operation] = {load for load in loads if any(map(self._by_replica, load.operands))}
        fillings = fillings_of(loads, by_replica, self.replicas)
        rings = rings_of(fillings)
        self._choose_depths(rings, loads)
        _name(rings)
        end = self.body.last_op
        assert end is not None, "a block ends in an operation"
        outside = self._outside(loads)
        inner = [op for op in self.body.ops if op not in outside and op is not end]

        start = Code(Block())
        start.at = loads[0]
        memory: dict[Filling, _Memory] = {}
        for ring in rings:
            memory.update(dict.fromkeys(ring.fillings, self._allocate(ring, start)))
        plan = _Plan(loads, copied, memory, inner, outside)
        op = self._tasks(plan)
        op.location = loads[0].location
        while (first := start.block.first_op) is not None:
            first.detach()
            self.body.insert_op_before(first, end)
        self.body.insert_op_before(op, end)
        for old in reversed(inner):
            old.detach()
            old.erase(safe_erase=False)
        captures = isolate(op.partitions.partition_regions)
        op.partitions.operands = captures
        self.function.attributes.pop(REPLICAS, None)

    # --- what the producer loads ---------------------------------------------------------------------------------

    def _loads(self) -> list[Load]:
        found: list[Load] = [
            op for op in self.function.walk() if isinstance(op, tt.DescriptorLoadOp) and op.result.first_use
        ]
        copies = self._copies()
        if not copies and not any(enclosing(op, *LOOPS) for op in found):
            first = self._first_load()
            note = first.attributes.get(NOTE)
            why = f": {note.data}" if isinstance(note, StringAttr) else ""
            raise refusal_at(first, f"no load in a loop is one that TMA can do, or threads by cp.async{why}")
        found += copies
        reasons: list[tuple[Operation, str]] = []
        chosen: list[Load] = []
        for load in self._in_order(found):
            needed = Slice([load])
            others = (op for op in needed.ops if op is not load and not self._may_repeat(op))
            obstacle = load if load.result in needed.values else next(others, None)
            if obstacle is None:
                chosen.append(load)
            elif isinstance(load, tt.LoadOp):
                note_stays(load, "its address depends on what the kernel computes from loaded blocks")
            elif isinstance(obstacle, tt.DescriptorLoadOp | tt.DotOp):
                reasons.append((load, "its address depends on what the kernel computes from loaded blocks"))
            else:
                reasons.append((load, f"its address depends on '{obstacle.name}', which can't be done twice"))
        if not any(enclosing(op, *LOOPS) for op in chosen):
            raise refusal_at(*(reasons or [(self._first_load(), "no load in a loop can come early")])[0])
        for load in chosen:
            if isinstance(load, tt.LoadOp):
                note_copy(load)
        check_early(self.function, chosen)
        return self._with_rows(chosen)

    def _with_rows(self, chosen: list[Load]) -> list[Load]:
        """Add small loads that the producer's threads may do beside `chosen`, in loops where a consumer fences."""
        if not self._is_hopper():
            return chosen
        blocks = {block for load in chosen if enclosing(load, *LOOPS) and (block := load.parent_block())}
        rows = [op for block in blocks if _fences(block, chosen) for op in block.ops if self._is_row(op)]
        # What says where others lie is loaded by all who ask for it.
        needed = Slice([*chosen, *rows])
        rows = [op for op in rows if not needed.values.intersection(op.results)]
        return self._in_order([*chosen, *rows])

    def _in_order(self, loads: Iterable[Load]) -> list[Load]:
        order = {op: number for number, op in enumerate(self.function.walk())}
        return sorted(loads, key=order.__getitem__)

    def _is_hopper(self) -> bool:
        return (module_target(self.module) or target_named("sm_90a")).has(Feature.WGMMA)

    def _copies(self) -> list[tt.LoadOp]:
        """The blocks in loops that threads copy; others get the reason why not."""
        blocks = [
            op for op in self.function.walk() if isinstance(op, tt.LoadOp) and enclosing(op, *LOOPS) and not is_row(op)
        ]
        if not blocks or not self._is_hopper():
            return []
        infos, found = axis_infos(self.function), list[tt.LoadOp]()
        for load in blocks:
            reason = why_no_copy(load, infos)
            if reason is None and not may_come_early(self.function, load):
                reason = "something before it in the program may decide what it reads"
            if reason is None:
                found.append(load)
            else:
                note_stays(load, reason)
        return found

    def _copied(self, load: tt.LoadOp) -> Sequence[tt.LoadOp]:
        """The loads that fill the buffers of a block: one for each consumer where these have other blocks."""
        if not any(map(self._by_replica, Slice([load]).values)):
            return [load]
        if (loop := carries_replica(load, self.replica_seen)) is not None:
            raise refusal_at(loop, "it carries addresses, and each consumer has its own")
        return list(copies_of_replicas(load, self.replicas, self.replica_seen))

    def _is_row(self, load: Operation) -> TypeGuard[tt.LoadOp]:
        if not isinstance(load, tt.LoadOp) or not load.result.first_use or tt.is_block_pointer(load.ptr.type):
            return False
        shape = shape_of_value(load.result)
        if len(shape) > 1 or prod(shape) > MOST_ELEMENTS or is_set(load, "isVolatile"):
            return False
        alike = not any(map(self._by_replica, load.operands))
        return alike and all(map(self._may_repeat, Slice([load]).ops)) and may_come_early(self.function, load)

    def _first_load(self) -> Operation:
        loads = [op for op in self.function.walk() if isinstance(op, tt.LoadOp | tt.DescriptorLoadOp)]
        inside = [op for op in loads if enclosing(op, *LOOPS)]
        return (inside or loads or [self.function])[0]

    @staticmethod
    def _may_repeat(op: Operation) -> bool:
        return is_only_read(op) and not isinstance(op, tt.DescriptorLoadOp | tt.DotOp)

    def _by_replica(self, value: SSAValue) -> bool:
        return depends_on_replica(value, self.replica_seen)

    def _outside(self, loads: Sequence[Operation]) -> set[Operation]:
        """The operations that stay before the tasks: of single numbers, which each task then has.

        So does the wait for earlier grids, which no load may precede.
        """
        kept: set[Operation] = set()
        has_written = False
        for op in self.body.ops:
            if isinstance(op, tt.GridDependencyWaitOp):
                kept.add(op)
                continue
            has_written = has_written or any(writes_memory(inner) for inner in op.walk())
            reads = bool(accesses_of(op))
            if (
                not op.regions
                and op.results
                and op not in loads
                and not any(isinstance(result.type, TensorType) for result in op.results)
                and is_only_read(op)
                and not (reads and has_written)
                and not isinstance(op, tlx.ReplicaIdOp)
                and all(isinstance(v.owner, Block) or v.owner in kept for v in op.operands)
            ):
                kept.add(op)
        return kept

    def _choose_depths(self, rings: Sequence[Ring], loads: Collection[Operation]) -> None:
        """Give each ring its slots: what was asked for, or as many as shared memory holds."""
        looped = [ring for ring in rings if _is_looped(ring)]
        inner = [ring for ring in looped if not _holds_a_loop(ring)] or looped
        for ring in rings:
            ring.depth = 1 if ring in inner else self.options.outer_depth or 1
        target = module_target(self.module) or target_named("sm_90a")
        limit = target.shared_bytes - RESERVED_BYTES - (0 if self.options.overlay else self._staging_bytes(loads))
        others = sum(ring.depth * self._slot_bytes(ring) for ring in rings if ring not in inner)
        slots = sum(map(self._slot_bytes, inner))
        depth = self.options.depth or min(MOST_SLOTS, (limit - others) // slots)
        if depth < 1:
            needed = f"{others + slots:,} bytes of shared memory for one slot of each ring"
            raise refusal_at(inner[0].fillings[0].loads[0], f"it needs {needed}, {limit:,} are there")
        for ring in inner:
            ring.depth = depth
        if not self.options.outer_depth and 2 * others + depth * slots <= limit:
            for ring in rings:
                if ring not in inner and _is_looped(ring):
                    ring.depth = 2

    def _slot_bytes(self, ring: Ring) -> int:
        return sum(ring.slot_bytes(self.replicas, by_threads=by_threads) for by_threads in (False, True))

    def _staging_bytes(self, loads: Collection[Operation]) -> int:
        """The bytes of buffers from which TMA will store results, and of operands that come from registers."""
        stores = {op.desc: op for op in self.function.walk() if isinstance(op, tt.DescriptorStoreOp)}
        blocks = [descriptor_type(op.desc.type) for op in stores.values()]
        staged = sum(prod(type_.shape) * type_.element_bits // 8 for type_ in blocks)
        staged = staged * buffers_of_pieces(self.options.pieces) // self.options.pieces
        # The second operand of a product is in shared memory (PTX ISA, "wgmma.mma_async").
        operands = [op.b for op in self.function.walk() if isinstance(op, tt.DotOp) and not _is_loaded(op.b, loads)]
        computed = {value: tensor_type(value.type) for value in operands}
        held = sum(prod(type_.get_shape()) * element_bits(type_.element_type) // 8 for type_ in computed.values())
        return (staged + held) * self.replicas

    # --- memory --------------------------------------------------------------------------------------------------

    def _allocate(self, ring: Ring, code: Code) -> _Memory:
        """Allocate the buffers and barriers of a ring."""
        code.at = ring.fillings[0].loads[0]
        buffers: list[SSAValue] = []
        for part, name in zip(ring.parts, ring.names, strict=True):
            count, *shape = part.type.shape
            type_ = MemDescType.get((ring.depth * count, *shape), part.type.element_type, part.type.encoding, SMEM)
            buffers.append(code.value(ttg.LocalAllocOp(operands=[None], result_types=[type_]), name))
        first = buffers[0].owner
        assert isinstance(first, Operation)
        many = f"{ring.depth} slots of" if ring.depth > 1 else "one slot of"
        copied = any(not is_row(load) and isinstance(load, tt.LoadOp) for load in ring.fillings[0].loads)
        size = self._slot_bytes(ring) if copied else ring.slot_bytes(self.replicas)
        who = " and ".join(["TMA"] * bool(ring.slot_bytes(self.replicas)) + ["threads"] * copied)
        verb = "fills" if who == "TMA" else "fill"
        first.attributes[NOTE] = StringAttr(f"{many} {size} bytes, which {who} {verb} while the consumers compute")
        prefix = "" if len(ring.parts) > 1 or not ring.names else f"{ring.names[0]}_"
        full = _barriers(code, ring.depth, ring.arrivals, f"{prefix}full")
        return _Memory(tuple(buffers), full, _barriers(code, ring.depth, self.replicas, f"{prefix}empty"))

    # --- tasks ---------------------------------------------------------------------------------------------------

    def _producer(self, plan: _Plan) -> Region:
        roots: list[Operation] = [each for load in plan.loads for each in plan.copied.get(load, (load,))]
        needed = Slice(roots)
        for op in needed.ops:
            if op.regions and any(map(self._by_replica, _deciding(op, needed))):
                raise refusal_at(op, "a loop or a branch of the producer depends on the number of the consumer")
        needed.ops -= {op for op in needed.ops if any(map(self._by_replica, op.results)) and not op.regions}
        needed.ops.difference_update(roots)
        fill = partial(self._fill, plan.copied)
        return self._task(plan, needed, -1, fill, ttg.WarpYieldOp(operands=[[]]))

    def _fill(
        self,
        copied: Mapping[Operation, Sequence[tt.LoadOp]],
        filling: Filling,
        held: _Memory,
        code: Code,
        values: dict[SSAValue, SSAValue],
        count: SSAValue,
    ) -> None:
        """Write the producer's part of filling a slot: TMA first, since threads wait for what they load."""
        ring = filling.ring
        assert ring is not None
        stage, phase = code.place(count, ring.depth, "")
        true = code.value(arith.ConstantOp(BoolAttr.from_bool(True), i1))
        code.add(_wait(_at(code, held.empty, stage), code.flipped(phase), true))
        full = _at(code, held.full, stage)
        if size := ring.slot_bytes(self.replicas):
            code.add(ttng.BarrierExpectOp(operands=[full, true], properties={"size": IntegerAttr(size, i32)}))
        parts = list(zip(filling.loads, filling.parts, held.buffers, strict=True))
        for load, part, buffers in parts:
            if isinstance(load, tt.LoadOp):
                continue
            code.at = load
            for replica in range(self.replicas if part.by_replica else 1):
                known = dict(values)
                where = [self._for_replica(code, index, replica, known) for index in load.indices]
                desc = values.get(load.desc, load.desc)
                index = self._buffer_index(code, stage, part.by_replica, code.number(replica))
                properties = {"cachePolicy": load.cache_policy}
                code.add(
                    ttng.AsyncTMACopyGlobalToLocalOp(
                        [desc, where, _at(code, held.full, stage), _at(code, buffers, index), true], properties
                    )
                )

        rows: list[tuple[tt.LoadOp, SSAValue, SSAValue]] = []
        for load, _, buffers in parts:
            if is_row(load):
                code.at = load
                rows.append((load, buffers, code.value(load.clone(values), load.result.name_hint)))
        for load, buffers, row in rows:
            code.at = load
            if not isinstance(row.type, TensorType):
                row = code.value(tt.SplatOp(operands=[row], result_types=[row_type(load)]))
            code.add(ttg.LocalStoreOp(operands=[row, _at(code, buffers, stage)]))
        tokens = [
            _copy(code, each, values, _at(code, buffers, self._buffer_index(code, stage, part.by_replica, replica)))
            for load, part, buffers in parts
            for number, each in enumerate(copied.get(load, ()))
            for replica in (code.number(number),)
        ]
        if tokens:
            code.add(ttg.AsyncCommitGroupOp(operands=[tokens], result_types=[ttg.AsyncTokenType()]))
            code.add(ttg.AsyncWaitOp(operands=[[]], properties={"num": _NONE}, result_types=[ttg.AsyncTokenType()]))
            code.add(ttng.FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}))
        if rows or tokens:
            code.add(ttng.ArriveBarrierOp(operands=[_at(code, held.full, stage), None], properties={"count": _ONE}))

    def _buffer_index(self, code: Code, stage: SSAValue, by_replica: bool, replica: SSAValue) -> SSAValue:
        """The number of a slot's buffer in the array."""
        if not by_replica or self.replicas == 1:
            return stage
        return code.sum(code.product(stage, code.number(self.replicas)), replica)

    def _for_replica(self, code: Code, value: SSAValue, replica: int, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """The value of the copy for one replica: what depends on it is computed here."""
        if value in known or not self._by_replica(value):
            return known.get(value, value)
        owner = value.owner
        assert isinstance(owner, Operation), "what depends on a replica is computed"
        if isinstance(owner, tlx.ReplicaIdOp):
            return code.number(replica)
        for operand in owner.operands:
            known[operand] = self._for_replica(code, operand, replica, known)
        if isinstance(owner, arith.AddiOp | arith.MuliOp) and value.type == i32:
            fold = code.sum if isinstance(owner, arith.AddiOp) else code.product
            known[value] = fold(known[owner.lhs], known[owner.rhs])
            return known[value]
        copy = code.add(owner.clone(known))
        known.update(zip(owner.results, copy.results, strict=True))
        return known[value]

    def _consumer(self, plan: _Plan) -> Region:
        roots = [op for top in plan.inner for op in top.walk() if writes_memory(op)]
        needed = Slice(roots, plan.loads)
        if self.replicas > 1:
            needed.ops |= {op for op in plan.inner if isinstance(op, tlx.ReplicaIdOp)}
        return self._task(plan, needed, 0, self._take, ttg.WarpReturnOp())

    def _take(
        self,
        filling: Filling,
        held: _Memory,
        code: Code,
        values: dict[SSAValue, SSAValue],
        count: SSAValue,
        *,
        reads: bool = True,
    ) -> None:
        """Write the consumer's part: wait for a slot, read its buffers where it has the turn, give the slot back."""
        ring = filling.ring
        assert ring is not None
        stage, phase = code.place(count, ring.depth, "")
        true = code.value(arith.ConstantOp(BoolAttr.from_bool(True), i1))
        code.add(_wait(_at(code, held.full, stage), phase, true))
        for load, part, buffers in zip(filling.loads, filling.parts, held.buffers, strict=True) if reads else ():
            code.at = load
            replica = self._replica(code) if part.by_replica and self.replicas > 1 else stage
            index = self._buffer_index(code, stage, part.by_replica, replica)
            view = _at(code, buffers, index)
            values[load.result] = code.value(_read(code, view, load), load.result.name_hint)
        code.add(ttng.ArriveBarrierOp(operands=[_at(code, held.empty, stage), None], properties={"count": _ONE}))

    def _most(self, code: Code, bound: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue | None:
        """Write the most that a bound is for any consumer; None where it is the same for all."""
        if not self._by_replica(bound):
            return None
        grows = growth(bound, lambda value: isinstance(value.owner, tlx.ReplicaIdOp))
        number = {1: [self.replicas - 1], -1: [0]}.get(grows or 0, range(self.replicas))
        alike = {old: new for old, new in values.items() if not self._by_replica(old)}
        first, *others = [self._for_replica(code, bound, replica, dict(alike)) for replica in number]
        for other in others:
            first = code.value(arith.MaxSIOp(first, other))
        return first

    @staticmethod
    def _replica(code: Code) -> SSAValue:
        return code.value(tlx.ReplicaIdOp(), "replica")

    def _task(self, plan: _Plan, needed: Slice, place: int, write: Callable[..., None], end: Operation) -> Region:
        """Copy what is needed, with what `write` writes in the place of one load of each filling."""
        needed.ops -= plan.outside
        needed.ops.difference_update(plan.loads)
        points: dict[Operation, tuple[CountKey, Point]] = {
            filling.loads[place]: (filling.count_key, partial(write, filling, held))
            for filling, held in plan.memory.items()
        }
        code = Code(Block())
        code.at = plan.inner[0]
        counts: dict[CountKey, SSAValue] = {key: code.number(0) for key, _ in points.values()}
        values: dict[SSAValue, SSAValue] = {}
        releases: dict[Operation, Point] = {
            filling.loads[0]: partial(write, filling, held, reads=False) for filling, held in plan.memory.items()
        }
        # Copies are reported later (`delay_arrivals.py`), some after the loop.
        late = [each.count_key for each in plan.memory if place and any(load in plan.copied for load in each.loads)]
        Copier(needed, points, self._most, None if place else releases, late).block(self.body, code, values, counts)
        code.add(end)
        drop_idle(code.block)
        return Region(code.block)

    def _tasks(self, plan: _Plan) -> ttg.WarpSpecializeOp:
        producer, consumer = self._producer(plan), self._consumer(plan)
        warps = self.module.attributes.get("ttg.num-warps")
        given = warps.value.data if isinstance(warps, IntegerAttr) else 4
        consumers = self.options.num_warps or (4 if self.replicas > 1 else given)
        op = ttg.WarpSpecializeOp.build_with([], [consumers], producer, [consumer])
        most = REGISTERS_BESIDE_COPIES if plan.copied else MOST_REGISTERS
        target = module_target(self.module)
        chosen = most.get(consumers * self.replicas, 0) if target is not None and target.has(Feature.WGMMA) else 0
        if registers := self.options.registers or chosen:
            op.properties["requestedRegisters"] = DenseArrayBase.from_list(i32, [registers])
        if self.replicas > 1:
            op.attributes[REPLICAS] = DenseArrayBase.from_list(i32, [self.replicas])
        self.module.attributes["ttg.num-warps"] = IntegerAttr(4, i32)
        return op


@dataclass(frozen=True)
class _Memory:
    """The buffers and barriers of a ring."""

    buffers: tuple[SSAValue, ...]
    full: SSAValue
    empty: SSAValue


@dataclass(frozen=True)
class _Plan:
    """The code that becomes tasks, and what the tasks have in common."""

    loads: Sequence[Load]
    """The loads that the producer does."""
    copied: Mapping[Operation, Sequence[tt.LoadOp]]
    """The loads that fill the buffers of each one that threads copy."""
    memory: Mapping[Filling, _Memory]
    inner: Sequence[Operation]
    """The operations of the kernel that the tasks do."""
    outside: set[Operation]
    """The operations that stay before the tasks."""


_NONE, _ONE = IntegerAttr(0, i32), IntegerAttr(1, i32)


def _copy(code: Code, load: tt.LoadOp, values: Mapping[SSAValue, SSAValue], buffer: SSAValue) -> SSAValue:
    """Start the copy of a block by `cp.async`; return its token."""
    pointers, mask = load.ptr, load.mask
    pointers, mask = values.get(pointers, pointers), None if mask is None else values.get(mask, mask)
    zeros = None if mask is None else code.value(constant(0, load.result.type))
    properties = {"cachePolicy": load.cache_policy, "isVolatile": BoolAttr.from_bool(False), "contiguity": _ONE}
    copy = ttg.AsyncCopyGlobalToLocalOp(
        operands=[pointers, buffer, mask, zeros], properties=properties, result_types=[ttg.AsyncTokenType()]
    )
    copy.attributes[NOTE] = load.attributes[NOTE]
    return code.value(copy, f"{load.result.name_hint or 'block'}_copy")


def _deciding(op: Operation, needed: Slice) -> list[SSAValue]:
    """Return what decides which turns or arms of an operation are done, and what these give; without a loop's end."""
    numbers = needed.carried.get(op, ())
    ends = [region.block.last_op for region in op.regions if region.blocks]
    given = [end.operands[number] for end in ends if end is not None for number in numbers]
    match op:
        case scf.ForOp():
            return [op.lb, op.step, *(op.iter_args[number] for number in numbers), *given]
        case scf.IfOp():
            return [op.cond, *given]
        case _:
            return list(op.operands)


def _is_loaded(value: SSAValue, loads: Collection[Operation]) -> bool:
    """True for a block that comes from a ring, as it is or rearranged."""
    owner = value.owner
    if isinstance(owner, tt.TransOp | tt.ReshapeOp):
        return _is_loaded(owner.operands[0], loads)
    return isinstance(owner, tt.DescriptorLoadOp) or owner in loads


def _fences(block: Block, loads: Collection[Operation]) -> bool:
    """True where a consumer hands results or operands over through shared memory, and fences, in each turn."""
    return any(
        isinstance(op, tt.DescriptorStoreOp) or (isinstance(op, tt.DotOp) and not _is_loaded(op.b, loads))
        for op in block.ops
    )


def _is_looped(ring: Ring) -> bool:
    return any(enclosing(filling.block.parent_op(), *LOOPS) for filling in ring.fillings)


def _holds_a_loop(ring: Ring) -> bool:
    """True if loops run between two fillings: the slot is held meanwhile."""
    return any(isinstance(op, LOOPS) for filling in ring.fillings for top in filling.block.ops for op in top.walk())


def _name(rings: Sequence[Ring]) -> None:
    """Give each part of each ring a name, after what is loaded."""
    taken: set[str] = set()
    for ring in rings:
        names: list[str] = []
        for load in ring.fillings[0].loads:
            desc = None if isinstance(load, tt.LoadOp) else load.desc.name_hint
            stem = load.result.name_hint or (desc or "tile").removesuffix("_desc")
            name = next(n for n in (stem, *(f"{stem}{i}" for i in range(2, 99))) if n not in taken)
            taken.add(name)
            names.append(name)
        ring.names = tuple(names)


def _barriers(code: Code, number: int, count: int, name: str) -> SSAValue:
    """Allocate and initialise mbarriers."""
    type_ = MemDescType.get((number, 1), i64, layout_attr(unswizzled_layout(1)), SMEM)
    array = code.value(ttg.LocalAllocOp(operands=[None], result_types=[type_]), name)
    for index in range(number):
        one = _at(code, array, code.number(index))
        code.add(ttng.InitBarrierOp(operands=[one], properties={"count": IntegerAttr(count, i32)}))
    return array


def _at(code: Code, array: SSAValue, index: SSAValue) -> SSAValue:
    """A buffer or a barrier of an array."""
    type_ = memdesc_type(array.type)
    one = MemDescType.get(type_.shape[1:], type_.element_type, type_.encoding, type_.memory_space)
    return code.value(ttg.MemDescIndexOp(operands=[array, index], result_types=[one]))


def _wait(barrier: SSAValue, phase: SSAValue, true: SSAValue) -> ttng.WaitBarrierOp:
    return ttng.WaitBarrierOp(operands=[barrier, phase, true, []])


def _read(code: Code, view: SSAValue, load: Load) -> Operation:
    """The load of a buffer to registers, in the shape of the block."""
    if isinstance(load, tt.LoadOp):
        row = ttg.LocalLoadOp(operands=[view, None], result_types=[row_type(load)])
        if isinstance(load.result.type, TensorType):
            return row
        return tt.UnsplatOp(operands=[code.value(row)], result_types=[load.result.type])
    type_, shape = memdesc_type(view.type), load.result.type.get_shape()
    if type_.shape != shape:
        layout = layout_of(type_.encoding)
        assert isinstance(layout, SharedLayout), "a ring's buffers have the layout of a buffer"
        layout = reshaped_buffer_layout(layout, type_.shape, type_.element_bits, shape)
        wanted = type_.with_shape(shape, layout_attr(layout))
        view = code.value(ttg.MemDescReshapeOp(operands=[view], result_types=[wanted]))
    return ttg.LocalLoadOp(operands=[view, None], result_types=[load.result.type])
