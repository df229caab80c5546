"""The code of a task anew, with its products in the tensor cores and their results in tensor memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, TensorType, UnitAttr, i1, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base import shape_attr, shape_of_tensor
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type

from ...rewriting import constant_integer
from ..copying import Code, plus, same, turn_count, turn_number
from ..products.dot_operands import is_zero
from .accumulators import Accumulator, Accumulators
from .operands import Operands
from .releases import Releases


@dataclass
class Place:
    """The memory of an accumulator: arrays, of which each copy of the task has its part."""

    buffers: SSAValue
    done: SSAValue
    """Barriers for the end of products."""
    depth: int
    """Buffers of a copy, which take turns."""


@dataclass
class Scope:
    """Facts that are known at a place in the program."""

    values: dict[SSAValue, SSAValue]
    """The values of the copy; a result in tensor memory has one once it is loaded."""
    counts: dict[Accumulator, SSAValue]
    """The phases of each accumulator's barrier so far; without the first, for one that loops carry and signal."""
    issued: set[Accumulator] = field(default_factory=set[Accumulator])
    """Accumulators with products for which threads have not waited since."""
    chosen: dict[Accumulator, tuple[SSAValue, SSAValue, SSAValue]] = field(
        default_factory=dict[Accumulator, tuple[SSAValue, SSAValue, SSAValue]]
    )
    """The count of phases, and the number of the buffer and the phase of its barrier that follow from it."""

    last: dict[Accumulator, SSAValue] = field(default_factory=dict[Accumulator, SSAValue])
    """The phase that the last product completes."""

    def inner(self) -> Scope:
        """Return the scope of a loop or branch."""
        return Scope(dict(self.values), dict(self.counts), set(self.issued), dict(self.chosen), dict(self.last))


@dataclass
class Plan:
    """Decisions that were made for a task."""

    accumulators: Accumulators
    operands: dict[tt.DotOp, Operands]
    releases: Releases
    places: dict[Accumulator, Place]
    stores: dict[tuple[tt.DotOp, str], SSAValue]
    """Buffers for the operands that the task stores, by product and name."""
    copies: int


class Writer:
    """Writes the code of a task."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.accumulators = plan.accumulators
        self.places: dict[Accumulator, Place] = {}

    def region(self, source: Region) -> Region:
        """Return the code of a region anew."""
        old = source.block
        block = Block(arg_types=[argument.type for argument in old.args])
        code = Code(block)
        code.at = old.first_op
        scope = Scope({}, {})
        same(old.args, block.args, scope.values)
        self.places = {
            accumulator: Place(scope.values[place.buffers], scope.values[place.done], place.depth)
            for accumulator, place in self.plan.places.items()
        }
        for accumulator in self.accumulators.all:
            scope.counts[accumulator] = code.number(-1 if accumulator.signals_each and accumulator.loops else 0)
        self._block(old, code, scope)
        end = old.last_op
        assert end is not None, "a task ends in an operation"
        for accumulator in self.accumulators.all:
            # Its last result was of no use, but no product may be in flight when the task ends.
            self._wait(accumulator, code, scope)
        code.at = end
        code.add(end.clone(scope.values))
        return Region(block)

    def _block(self, source: Block, code: Code, scope: Scope) -> None:
        for op in source.ops:
            code.at = op
            if op.has_trait(IsTerminator):
                continue
            match op:
                case tt.DotOp() if op in self.plan.operands:
                    self._product(op, code, scope)
                case ttng.ArriveBarrierOp() if op in self.plan.releases.moved:
                    pass
                case scf.ForOp():
                    self._for(op, code, scope)
                case scf.IfOp():
                    self._if(op, code, scope)
                case _:
                    self._plain(op, code, scope)
            for arrival in self.plan.releases.after(op):
                code.at = arrival
                code.add(_commit(self._barrier(arrival, code, scope)))

    def _plain(self, op: Operation, code: Code, scope: Scope) -> None:
        self._load_all(op.operands, code, scope)
        for region in op.regions:
            for inner in region.walk():
                self._load_all([v for v in inner.operands if v in self.accumulators.of], code, scope)
        copy = code.add(op.clone(scope.values))
        same(op.results, copy.results, scope.values)

    # --- products ------------------------------------------------------------------------------------------------

    def _product(self, dot: tt.DotOp, code: Code, scope: Scope) -> None:
        accumulator = self.accumulators.of[dot.d]
        a = self._operand(dot, "a", code, scope)
        b = self._operand(dot, "b", code, scope)
        for value in accumulator.values:
            if value is not dot.d and self._is_waiting(value, dot, scope):
                self._load(value, code, scope)
        use = self._sum(dot, code, scope)
        place = self.places[accumulator]
        index, phase = self._index(accumulator, code, scope)
        arrivals: list[SSAValue] = []
        if dot in accumulator.signals:
            arrivals.append(_at(code, place.done, index))
        arrivals += [self._barrier(arrival, code, scope) for arrival in self.plan.releases.by(dot)]
        true = _true(code)
        product = ttng.TCGen5MMAOp(
            operands=[a, b, _at(code, place.buffers, index), None, use, true, arrivals, [true] * len(arrivals)],
            properties={"is_async": UnitAttr()},
            result_types=[None],
        )
        code.add(product)
        scope.issued.add(accumulator)
        if dot in accumulator.signals:
            scope.counts[accumulator] = plus(code, scope.counts[accumulator], 1)
            scope.last[accumulator] = phase

    def _operand(self, dot: tt.DotOp, name: str, code: Code, scope: Scope) -> SSAValue:
        """The buffer of an operand: the ring's, or one that the task stores the block to."""
        found = self.plan.operands[dot].a if name == "a" else self.plan.operands[dot].b
        if found is not None:
            view = scope.values.get(found.load.src, found.load.src)
            for step, type_ in zip(found.steps, found.types, strict=True):
                code.at = step
                made: Operation = (
                    ttg.MemDescTransOp.build(operands=[view], properties={"order": step.order}, result_types=[type_])
                    if isinstance(step, tt.TransOp)
                    else ttg.MemDescReshapeOp.build(operands=[view], result_types=[type_])
                )
                view = code.value(made)
            code.at = dot
            return view
        block = self._value(dot.a if name == "a" else dot.b, code, scope)
        self._wait(self.accumulators.of[dot.d], code, scope)
        array = self.plan.stores[dot, name]
        copy = code.number(0) if self.plan.copies == 1 else code.value(tlx.ReplicaIdOp())
        buffer = _at(code, scope.values.get(array, array), copy)
        _store(code, block, buffer)
        return buffer

    def _sum(self, dot: tt.DotOp, code: Code, scope: Scope) -> SSAValue:
        """True if the product adds to the buffer, which has then what it adds to."""
        if is_zero(dot.c):
            return _flag(code, False)
        accumulator = self.accumulators.of[dot.d]
        if not self.accumulators.is_replaced(dot):
            loop, before = dot.parent_op(), dot.c
            if (
                isinstance(loop, scf.ForOp)
                and isinstance(before, BlockArgument)
                and before.block is loop.body.block
                and self.accumulators.is_fresh(loop, before.index - 1)
            ):
                turn, lower = (scope.values.get(value, value) for value in (loop.body.block.args[0], loop.lb))
                return code.value(CmpiOp("sgt", turn, lower))
            return _flag(code, True)
        block = self._value(dot.c, code, scope)
        self._wait(accumulator, code, scope)
        _store(code, block, self._buffer(accumulator, code, scope))
        return _flag(code, True)

    # --- results -------------------------------------------------------------------------------------------------

    def _value(self, value: SSAValue, code: Code, scope: Scope) -> SSAValue:
        """The value in registers."""
        self._load_all([value], code, scope)
        return scope.values.get(value, value)

    def _load_all(self, values: Sequence[SSAValue], code: Code, scope: Scope) -> None:
        for value in values:
            if value in self.accumulators.of and value not in scope.values:
                self._load(value, code, scope)

    def _is_waiting(self, value: SSAValue, dot: tt.DotOp, scope: Scope) -> bool:
        """True if the product would overwrite a value that threads have not loaded, and need later."""
        if value in scope.values or not self._is_defined(value, dot):
            return False
        return self.accumulators.is_needed_later(value, dot)

    def _is_defined(self, value: SSAValue, dot: tt.DotOp) -> bool:
        """True if a value of the same block comes before the product."""
        block = dot.parent
        if value.owner is block:
            return True
        owner = value.owner
        return isinstance(owner, Operation) and owner.parent is block and self.accumulators.is_before(owner, dot)

    def _load(self, value: SSAValue, code: Code, scope: Scope) -> None:
        """Wait for a result, and load it."""
        accumulator = self.accumulators.of[value]
        index, _ = self._index(accumulator, code, scope)
        self._wait(accumulator, code, scope)
        place = self.places[accumulator]
        loop = value.owner
        has_run = None
        if isinstance(loop, scf.ForOp):
            number = loop.results.index(value)  # pyright: ignore[reportArgumentType]
            if self.accumulators.is_fresh(loop, number):
                has_run = self._has_run(loop, code, scope)
                if has_run is None:
                    scope.values[value] = _load(code, _at(code, place.buffers, index), value)
                    return
                start = loop.iter_args[number]
                self._load_if(value, has_run, start, (place, index), code, scope)
                return
        scope.values[value] = _load(code, _at(code, place.buffers, index), value)

    def _load_if(
        self,
        value: SSAValue,
        has_run: SSAValue,
        start: SSAValue,
        source: tuple[Place, SSAValue],
        code: Code,
        scope: Scope,
    ) -> None:
        """Load what a loop has computed, if it had a turn, which nothing else has written."""
        place, index = source
        then, other = Code(Block()), Code(Block())
        then.at = other.at = code.at
        then.add(scf.YieldOp(_load(then, _at(then, place.buffers, index), value)))
        other.add(scf.YieldOp(scope.values.get(start, start)))
        branch = code.add(scf.IfOp(has_run, [value.type], Region(then.block), Region(other.block)))
        branch.results[0].name_hint = value.name_hint
        scope.values[value] = branch.results[0]

    def _has_run(self, loop: scf.ForOp, code: Code, scope: Scope) -> SSAValue | None:
        """True if a loop has had a turn; None where it is known to."""
        lower, upper = constant_integer(loop.lb), constant_integer(loop.ub)
        if lower is not None and upper is not None and lower < upper:
            return None
        first, last = (scope.values.get(value, value) for value in (loop.lb, loop.ub))
        return code.value(CmpiOp("sgt", last, first))

    def _wait(self, accumulator: Accumulator, code: Code, scope: Scope) -> None:
        """Wait for all products of an accumulator, unless that was done."""
        if accumulator not in scope.issued:
            return
        place = self.places[accumulator]
        count = scope.counts[accumulator]
        if accumulator.signals_each:
            phase = _parity(code, count) if accumulator.loops else scope.last[accumulator]
            index = self._of_replica(None, code) if self.plan.copies > 1 else code.number(0)
            code.add(_wait(_at(code, place.done, index), phase, _true(code)))
        else:
            index, phase = self._index(accumulator, code, scope)
            code.add(_commit(_at(code, place.done, index)))
            code.add(_wait(_at(code, place.done, index), phase, _true(code)))
            scope.counts[accumulator] = plus(code, count, 1)
        scope.issued.discard(accumulator)

    def _index(self, accumulator: Accumulator, code: Code, scope: Scope) -> tuple[SSAValue, SSAValue]:
        """The number of the buffer that is in use, and the phase of its barrier."""
        count = scope.counts[accumulator]
        known = scope.chosen.get(accumulator)
        if known is not None and known[0] is count:
            return known[1:]
        depth = self.places[accumulator].depth
        stage, phase = code.place(count, depth, "") if depth > 1 else (code.number(0), _parity(code, count))
        if self.plan.copies > 1:
            stage = self._of_replica(None if depth == 1 else stage, code)
        scope.chosen[accumulator] = count, stage, phase
        return stage, phase

    def _of_replica(self, stage: SSAValue | None, code: Code) -> SSAValue:
        """The number of a buffer of this copy of the task."""
        replica = code.value(tlx.ReplicaIdOp())
        if stage is None:
            return replica
        return code.value(arith.AddiOp(code.value(arith.MuliOp(stage, code.number(self.plan.copies))), replica))

    def _buffer(self, accumulator: Accumulator, code: Code, scope: Scope) -> SSAValue:
        index, _ = self._index(accumulator, code, scope)
        return _at(code, self.places[accumulator].buffers, index)

    def _barrier(self, arrival: ttng.ArriveBarrierOp, code: Code, scope: Scope) -> SSAValue:
        """The barrier of an arrival, for the tensor cores to arrive at."""
        view = arrival.alloc.owner
        if not isinstance(view, ttg.MemDescIndexOp):
            return scope.values.get(arrival.alloc, arrival.alloc)
        array, index = (scope.values.get(value, value) for value in (view.src, view.index))
        return _at(code, array, index)

    # --- loops and branches --------------------------------------------------------------------------------------

    def _for(self, op: scf.ForOp, code: Code, scope: Scope) -> None:
        body = op.body.block
        held = self.accumulators.carried.get(op, {})
        kept = [number for number in range(len(op.iter_args)) if number not in held]
        self._load_all([op.lb, op.ub, op.step, *(op.iter_args[n] for n in kept)], code, scope)
        for number, accumulator in held.items():
            self._start(op, number, accumulator, code, scope)
            if not accumulator.signals_each:
                # The number of the buffer, and the phase, stay the same in the loop.
                self._index(accumulator, code, scope)
        inside_needs = [value for value in self.accumulators.loaded_in(op) if not _lies_in(value, op)]
        self._load_all(inside_needs, code, scope)

        by_turn, carried = self._counted(op)
        lower, upper, step = (scope.values.get(value, value) for value in (op.lb, op.ub, op.step))
        types = [op.iter_args[n].type for n in kept]
        inner = Block(arg_types=[op.lb.type, *types, *[i32] * len(carried)])
        arguments = [body.args[0], *(body.args[1 + n] for n in kept)]
        within, below = Code(inner), scope.inner()
        within.at = op
        same(arguments, inner.args, below.values)
        for accumulator, argument in zip(carried, inner.args[len(arguments) :], strict=True):
            argument.name_hint = self._name_of_count(accumulator)
            argument.location = body.args[0].location
            below.counts[accumulator] = argument
        if by_turn:
            turn = turn_number(within, inner.args[0], lower, step)
            for accumulator in by_turn:
                below.counts[accumulator] = plus(within, scope.counts[accumulator], turn)
        below.issued |= self._left_in(op)
        self._block(body, within, below)
        end = body.last_op
        assert end is not None, "a block ends in an operation"
        within.at = end
        results = [self._value(end.operands[n], within, below) for n in kept]
        within.add(scf.YieldOp(*results, *(below.counts[accumulator] for accumulator in carried)))

        code.at = op
        starts = [scope.values.get(op.iter_args[n], op.iter_args[n]) for n in kept]
        starts += [scope.counts[accumulator] for accumulator in carried]
        turns = turn_count(code, lower, upper, step) if by_turn else None
        loop = code.add(scf.ForOp(lower, upper, step, starts, inner))
        loop.attributes.update(op.attributes)
        same([op.results[n] for n in kept], loop.results, scope.values)
        for accumulator in by_turn:
            assert turns is not None
            scope.counts[accumulator] = plus(code, scope.counts[accumulator], turns)
        for accumulator, result in zip(carried, loop.results[len(kept) :], strict=True):
            result.name_hint = self._name_of_count(accumulator)
            scope.counts[accumulator] = result
        scope.issued |= below.issued

    def _start(self, op: scf.ForOp, number: int, accumulator: Accumulator, code: Code, scope: Scope) -> None:
        """Put the first value of what a loop carries where its products are."""
        start = op.iter_args[number]
        if self.accumulators.of.get(start) is accumulator:
            if start not in scope.values and self.accumulators.is_needed_later(start, op):
                self._load(start, code, scope)
            return
        if not self.accumulators.is_fresh(op, number):
            block = self._value(start, code, scope)
            self._wait(accumulator, code, scope)
            _store(code, block, self._buffer(accumulator, code, scope))
        if accumulator.signals_each:
            # Each turn waits for the product of the one before: the first one for none.
            index, _ = self._index(accumulator, code, scope)
            code.add(_commit(_at(code, self.places[accumulator].done, index)))
            scope.counts[accumulator] = plus(code, scope.counts[accumulator], 1)
            scope.issued.add(accumulator)

    def _counted(self, op: scf.ForOp) -> tuple[list[Accumulator], list[Accumulator]]:
        """The accumulators whose phases a loop begins: one in each turn, and others."""
        by_turn: list[Accumulator] = []
        carried: list[Accumulator] = []
        for accumulator in self.accumulators.all:
            if accumulator.signals_each:
                inside = [dot for dot in accumulator.signals if _is_inside(dot, op)]
                # What is known of a count after a loop is known of one that the loop carries.
                is_needed_after = bool(accumulator.loops) or isinstance(op.parent_op(), scf.ForOp)
                if len(inside) == 1 and inside[0].parent is op.body.block and not is_needed_after:
                    by_turn.append(accumulator)
                elif inside:
                    carried.append(accumulator)
            elif self.accumulators.waits_in(op, accumulator):
                carried.append(accumulator)
        return by_turn, carried

    def _left_in(self, op: Operation) -> set[Accumulator]:
        """The accumulators whose products may be in flight when a loop begins its next turn.

        What no loop carries, and products signal, is waited for in the block of the product.
        """
        return {
            accumulator
            for accumulator in self.accumulators.all
            if (accumulator.loops or not accumulator.signals_each)
            and any(_is_inside(dot, op) for dot in accumulator.dots)
        }

    @staticmethod
    def _name_of_count(accumulator: Accumulator) -> str:
        return f"{accumulator.dots[0].d.name_hint or 'sum'}_count"

    def _if(self, op: scf.IfOp, code: Code, scope: Scope) -> None:
        self._load_all([op.cond], code, scope)
        outer = [value for value in self.accumulators.loaded_in(op) if not _lies_in(value, op)]
        self._load_all(outer, code, scope)
        counted = [each for each in self.accumulators.all if self._begins_phases(op, each)]
        regions: list[Region] = []
        issued: set[Accumulator] = set()
        for region in op.regions:
            within, below = Code(Block()), scope.inner()
            within.at = op
            end = None
            if region.blocks:
                self._block(region.block, within, below)
                end = region.block.last_op
            results = [] if end is None else [self._value(value, within, below) for value in end.operands]
            within.at = op if end is None else end
            within.add(scf.YieldOp(*results, *(below.counts[each] for each in counted)))
            regions.append(Region(within.block))
            issued |= below.issued
        if not op.results and not counted and not op.false_region.blocks:
            regions[1] = Region()
        types: list[Attribute] = [*op.result_types, *[i32] * len(counted)]
        code.at = op
        condition = scope.values.get(op.cond, op.cond)
        branch = code.add(scf.IfOp(condition, types, regions[0], regions[1]))
        same(op.results, branch.results, scope.values)
        for accumulator, result in zip(counted, branch.results[len(op.results) :], strict=True):
            result.name_hint = self._name_of_count(accumulator)
            scope.counts[accumulator] = result
        scope.issued |= issued

    def _begins_phases(self, op: Operation, accumulator: Accumulator) -> bool:
        if accumulator.signals_each:
            return any(_is_inside(dot, op) for dot in accumulator.signals)
        return self.accumulators.waits_in(op, accumulator)


# --- operations -------------------------------------------------------------------------------------------------------


def _at(code: Code, array: SSAValue, index: SSAValue) -> SSAValue:
    """A buffer or a barrier of an array."""
    type_ = memdesc_type(array.type)
    one = MemDescType.get(type_.shape[1:], type_.element_type, type_.encoding, type_.memory_space)
    return code.value(ttg.MemDescIndexOp(operands=[array, index], result_types=[one]))


def _parity(code: Code, count: SSAValue) -> SSAValue:
    known = constant_integer(count)
    return code.value(arith.AndIOp(count, code.number(1)), "phase") if known is None else code.number(known % 2)


def _flag(code: Code, value: bool) -> SSAValue:
    return code.value(arith.ConstantOp(BoolAttr.from_bool(value), i1))


def _true(code: Code) -> SSAValue:
    return _flag(code, True)


def _wait(barrier: SSAValue, phase: SSAValue, true: SSAValue) -> ttng.WaitBarrierOp:
    return ttng.WaitBarrierOp(operands=[barrier, phase, true, []])


def _commit(barrier: SSAValue) -> ttng.TCGen5CommitOp:
    return ttng.TCGen5CommitOp(operands=[barrier, None, []])


def _in_registers(block: Attribute, element: Attribute) -> TensorType[Attribute]:
    """The type of a block in a layout that tensor memory can be loaded into, chosen later."""
    shape = shape_of_tensor(block)
    layout = tlx.DummyRegisterLayoutAttr(shape_attr(shape), element, BoolAttr.from_bool(True))
    return TensorType(element, shape, layout)


def _load(code: Code, buffer: SSAValue, value: SSAValue) -> SSAValue:
    """Load a block from tensor memory."""
    element = memdesc_type(buffer.type).element_type
    loaded = ttng.TMEMLoadOp(operands=[buffer, None], result_types=[_in_registers(value.type, element), None, None])
    return code.value(tlx.ReleaseLayoutOp(operands=[code.value(loaded)], result_types=[value.type]), value.name_hint)


def _store(code: Code, block: SSAValue, buffer: SSAValue) -> None:
    """Store a block for the tensor cores."""
    type_ = memdesc_type(buffer.type)
    if isinstance(type_.memory_space, ttg.SharedMemorySpaceAttr):
        code.add(ttg.LocalStoreOp(operands=[block, buffer]))
        code.add(ttng.FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}))
        return
    wanted = _in_registers(block.type, type_.element_type)
    laid = code.value(tlx.RequireLayoutOp(operands=[block], result_types=[wanted]))
    code.add(ttng.TMEMStoreOp(operands=[buffer, None, laid, _true(code)], result_types=[None]))


def _is_inside(op: Operation, root: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not root:
        parent = parent.parent_op()
    return parent is root


def _lies_in(value: SSAValue, root: Operation) -> bool:
    """True if a value is defined inside of a loop or branch."""
    owner = value.owner
    parent = owner.parent_op() if isinstance(owner, Block) else owner
    if isinstance(owner, Block):
        return parent is root or (parent is not None and _is_inside(parent, root))
    return _is_inside(owner, root)
