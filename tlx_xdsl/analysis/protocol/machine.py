"""Steps of a task, and how each changes the state of its thread block.

Asynchronous operations take effect at once here, and count as not ordered until they are waited for: if nothing is
wrong with that, it makes no difference when they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.base import (
    BULK_COPY,
    TMA,
    Effects,
    Group,
    Kind,
    OperandAccess,
    Space,
    Sync,
    accesses_of,
    effects_of,
)

from .arithmetic import Arithmetic, compute, function_of, view
from .barriers import BrokenError, arrive, arrive_named, deliver, passes
from .buffers import Allocation, allocate, name_of, read, write
from .code import (
    Act,
    Advance,
    Assign,
    Branch,
    Code,
    Compute,
    Enter,
    Function,
    Join,
    Jump,
    Start,
    Step,
    Test,
    UnprovedError,
)
from .demand import Demands, is_view
from .facts import LongerPeriodError, TooNearError, normalised
from .state import Agent, Barrier, Clock, Event, Named, State, Task, Turn, join
from .values import (
    Atom,
    Part,
    Sum,
    Value,
    Values,
    View,
    add,
    constant_of,
    order,
    origins_of,
    parts_of,
    scale,
    total,
)

_SCALES = ("tcgen05", "copies")
_SPACES = (Space.SHARED, Space.TENSOR)
_QUEUES = {Group.WGMMA: "wgmma", Group.BULK: "store", Group.CP_ASYNC: "copy"}


class Machine:
    """The steps of all tasks of a kernel."""

    def __init__(
        self, function: Operation, codes: Mapping[Block, Code], allocations: Sequence[Allocation], demands: Demands
    ):
        self.function = function
        self.values = Values()
        self.arithmetic = Arithmetic(self.values, demands)
        self.codes = codes
        self.allocations = allocations
        self.numbers = {each.op: number for number, each in enumerate(allocations)}
        self.demands = demands
        self._effects: dict[Operation, tuple[Effects, tuple[OperandAccess, ...] | None]] = {}
        self.limits: dict[tuple[Part, ...], Operation] = {}
        """The loops that turn if these atoms are more than a number."""
        self.ends: dict[tuple[Part, ...], set[int]] = {}
        """The constants with which loops end at these atoms."""
        self.joins = False
        """Whether loops whose ends differ by a constant have one origin."""
        self.most_pending = max(
            (
                step.op.pendings.value.data
                for code in codes.values()
                for step in code.steps
                if isinstance(step.op, ttng.WarpGroupDotWaitOp | ttng.AsyncTMAStoreWaitOp)
            ),
            default=0,
        )
        """The most operations of a queue that a wait leaves in flight."""

    def turn(self, state: State, task: Task) -> bool:
        """Run a task until it waits or begins a turn of a loop; returns whether it has done anything."""
        self.arithmetic.facts = state.facts
        began = False
        while task.has_started and not task.has_ended:
            step = task.code.steps[task.at]
            if isinstance(step, Test) and began:
                return True
            waited = task.named
            if not self.step(state, task, step):
                # To arrive at a named barrier is something, although the task waits there.
                return began or task.named != waited
            began = True
        return began

    def step(self, state: State, task: Task, step: Step) -> bool:
        """Run one step; returns False, and changes nothing, where the task must wait."""
        next_ = task.at + 1
        match step:
            case Compute():
                self.compute(state, task, step.op)
            case Function():
                found = function_of(self.arithmetic, step.op, task.known)
                task.known.update(zip(step.op.results, found, strict=True))
            case Assign():
                task.known.update(
                    [(target, self.kept(target, task.known.get(source))) for target, source in step.pairs]
                )
            case Enter():
                assert isinstance(step.op, scf.ForOp)
                self.enter(state, task, step.op)
            case Jump() | Branch() | Test():
                next_ = self.next(state, task, step)
            case Advance():
                turn = task.turns[-1]
                task.turns = (*task.turns[:-1], replace(turn, at=turn.at + turn.by))
            case Start():
                assert isinstance(step.op, ttg.WarpSpecializeOp)
                self.start(state, task, step.op)
            case Join():
                if not self.join(state, task):
                    return False
            case Act():
                if not self.act(state, task, step.op):
                    return False
            case _:
                raise AssertionError(step)
        task.at = next_
        return True

    def next(self, state: State, task: Task, step: Jump | Branch | Test) -> int:
        """Return where a task goes on."""
        match step:
            case Jump():
                return step.to
            case Branch():
                return task.at + 1 if self.truth(state, task, step.op, step.condition) else step.to
            case Test():
                return task.at + 1 if self.goes_on(state, task) else step.to

    # Values ----------------------------------------------------------------------------------------------------------

    def compute(self, state: State, task: Task, op: Operation) -> None:
        """Compute a value or a view, or allocate."""
        if op in self.numbers:
            allocate(state, self.numbers[op], op)
            task.known[op.results[0]] = View(self.numbers[op])
        elif is_view(op):
            task.known[op.results[0]] = view(op, task.known, state.facts)
        elif all(isinstance(result.type, ttg.MemDescType) for result in op.results):
            raise UnprovedError(op, f"which buffer '{op.name}' gives is not known")
        else:
            task.known[op.results[0]] = compute(self.arithmetic, op, task.known)

    def kept(self, target: SSAValue, value: object) -> object:
        """Return what is passed on of a value: its remainder, where no more is asked for."""
        modulus = self.demands.moduli.get(target, 0)
        if modulus == 0 or not isinstance(value, int | Sum):
            return value
        number: Value = value  # pyright: ignore[reportAssignmentType, reportUnknownVariableType]
        assert self.arithmetic.facts is not None
        if not self.arithmetic.facts.is_natural(number):
            return number
        parts = {atom: factor % modulus for atom, factor in parts_of(number) if atom.kind != "origin"}
        # An origin is a multiple of the period, and the period of the modulus.
        if any(atom.kind == "origin" for atom, _ in parts_of(number)):
            facts = self.arithmetic.facts
            assert facts is not None
            if facts.questions.period % modulus:
                raise LongerPeriodError(modulus)
        return total(constant_of(number) % modulus, parts)

    def number(self, state: State, task: Task, op: Operation, value: SSAValue) -> int:
        """The number that a value is."""
        found = task.known.get(value)
        number = state.facts.number(found) if isinstance(found, int | Sum) else None
        if number is None:
            raise UnprovedError(op, "this depends on a number that is not known before the kernel runs")
        return number

    def truth(self, state: State, task: Task, op: Operation, value: SSAValue | None) -> bool:
        """Return whether a condition holds; None does."""
        if value is None:
            return True
        found = task.known.get(value)
        if not isinstance(found, int | Sum):
            raise UnprovedError(op, "this depends on a condition that is not known before the kernel runs")
        return bool(state.facts.truth(found))

    # Loops -----------------------------------------------------------------------------------------------------------

    def enter(self, state: State, task: Task, op: scf.ForOp) -> None:
        """Note the bounds of a loop: turns are counted from an origin that all tasks share, in which it is the same."""
        known = [task.known.get(value) for value in (op.lb, op.ub, op.step)]
        bounds = [each for each in known if isinstance(each, int | Sum)]
        if len(bounds) < len(known):
            raise UnprovedError(op, "the bounds of this loop are not known before the kernel runs")
        lower, upper, by = (state.facts.simplified(each) for each in bounds)
        base: Value = 0
        stride: Value = 1
        at = 0
        if isinstance(by, int):
            if isinstance(lower, int):
                at, limit = lower, upper
            else:
                base, limit = lower, add(upper, lower, -1)
        else:
            # That is what 'scf.for' asks for.
            state.facts.assume_positive(by)
            base, stride, limit, by = lower, by, self.values.of("turns", lower, upper, by), 1
        origin = None
        if isinstance(limit, Sum):
            state.facts.split_early(limit)
            if not origins_of(limit):
                # Whether it turns at all is the same question each time, how often is asked anew.
                turns = Sum(limit.constant - at, limit.parts)
                self.limits.setdefault(normalised(turns)[0], op)
                state.facts.positive(turns)
            origin = self.origin(state, task, op, limit)
            if state.facts.questions.period % by:
                raise LongerPeriodError(by)
        task.turns = (*task.turns, Turn(op, origin, at, by, base, stride, limit))

    def origin(self, state: State, task: Task, op: scf.ForOp, limit: Value) -> Atom:
        """The origin of a loop that goes up to `limit`, in these turns of the loops around it."""
        around = tuple(add(turn.at, total(0, {turn.origin: 1})) for turn in task.turns if turn.origin is not None)
        assert isinstance(limit, Sum)
        self.ends.setdefault(limit.parts, set()).add(limit.constant)
        if self.joins:
            limit = Sum(0, limit.parts)
        number = 0
        while (origin := self.values.atom("origin", limit, around, number)) in task.left:
            number += 1
        if origin in state.shifted:
            raise TooNearError(op)
        if number and (first := self.values.atom("origin", limit, around, 0)) in state.shifted:
            raise UnprovedError(op, f"this is the second loop that turns as often, after many turns ({first.kind})")
        state.facts.bounds.setdefault(((origin, 1),), (0, 0))
        return origin

    def goes_on(self, state: State, task: Task) -> bool:
        """Begin a turn of the innermost loop, or leave it."""
        turn = task.turns[-1]
        origin: Value = 0 if turn.origin is None else Sum(0, ((turn.origin, 1),))
        here = add(origin, turn.at)
        if not state.facts.positive(add(turn.limit, here, -1)):
            task.turns = task.turns[:-1]
            if turn.origin is not None:
                task.left[turn.origin] = 1
            return False
        index = turn.loop.body.block.args[0]
        if index in self.demands:
            stride = turn.stride
            scaled = scale(here, stride) if isinstance(stride, int) else self.product(here, stride)
            task.known[index] = add(turn.base, scaled)
        return True

    def product(self, left: Value, right: Value) -> Value:
        """The product of two values."""
        if isinstance(left, int):
            return scale(right, left)
        return self.values.of("product", *sorted((left, right), key=order))

    # Tasks -----------------------------------------------------------------------------------------------------------

    def start(self, state: State, task: Task, op: ttg.WarpSpecializeOp) -> None:
        """Start the partitions with what is known here."""
        released = task.release()
        partitions = op.partitions
        blocks = [region.block for region in partitions.partition_regions]
        for other in state.tasks[1:]:
            for block in blocks:
                if self.codes[block] is other.code:
                    if other.has_started:
                        raise UnprovedError(op, "these tasks are started more than once")
                    captured = zip(block.args, partitions.explicit_captures, strict=True)
                    other.known = {inner: task.known.get(outer) for inner, outer in captured}
                    other.clock = released.copy()
                    other.has_started = True

    def join(self, state: State, task: Task) -> bool:
        """Wait until all others have ended."""
        others = [other for other in state.tasks if other is not task and other.has_started]
        if not all(other.has_ended for other in others):
            return False
        for other in others:
            join(task.clock, other.clock)
        return True

    # Actions ---------------------------------------------------------------------------------------------------------

    def act(self, state: State, task: Task, op: Operation) -> bool:
        """Do what an operation does; False where it must wait."""
        match op:
            case ttng.WaitBarrierOp():
                return self.wait(state, task, op)
            case tlx.NamedBarrierWaitOp():
                return self.wait_named(state, task, op)
            case ttng.InitBarrierOp():
                where = self.view(task, op, op.alloc)
                if (where.allocation, where.slot) in state.barriers or any(
                    each.has_started for each in state.tasks[1:]
                ):
                    raise UnprovedError(op, "a barrier is initialised again, or while tasks run")
                name = name_of(self.allocations, where)
                count = op.count.value.data
                state.barriers[where.allocation, where.slot] = Barrier(name, op, count, count)
            case ttng.InvalBarrierOp() if not any(each.has_started for each in state.tasks if each is not task):
                where = self.view(task, op, op.alloc)
                state.barriers.pop((where.allocation, where.slot), None)
            case ttng.WarpGroupDotWaitOp():
                self.observe(task, "wgmma", op.pendings.value.data)
            case ttng.AsyncTMAStoreWaitOp():
                self.observe(task, "store", op.pendings.value.data)
            case ttg.AsyncCommitGroupOp():
                task.groups = (*task.groups, task.issued.get(self.queue(task, "copy"), 0))
            case ttg.AsyncWaitOp():
                self.wait_for_copies(task, op)
            case _:
                self.arrival(state, task, op)
        return True

    def arrival(self, state: State, task: Task, op: Operation) -> None:
        """Arrive at a barrier; else access buffers."""
        match op:
            case ttng.BarrierExpectOp() if op.from_cta is None:
                if self.truth(state, task, op, op.pred):
                    barrier = self.barrier(state, task, op, op.alloc)
                    barrier.bytes += op.size.value.data
                    self.arrive(task, op, barrier, 1)
            case ttng.ArriveBarrierOp() if op.from_cta is None and not op.multicast_cta.value.data:
                if self.truth(state, task, op, op.pred):
                    self.arrive(task, op, self.barrier(state, task, op, op.alloc), op.count.value.data)
            case tlx.ArrivePerThreadOp():
                if self.truth(state, task, op, op.pred):
                    self.arrive(task, op, self.barrier(state, task, op, op.alloc), 32 * task.code.warps)
            case ttng.TCGen5CommitOp() if not op.descs and not ttng.has_pair_products(self.function):
                if self.truth(state, task, op, op.pred):
                    self.commit(state, task, op, op.barrier)
            case tlx.NamedBarrierArriveOp():
                number = self.number(state, task, op, op.id)
                barrier_ = state.named.setdefault(number, Named())
                arrive_named(barrier_, task, op, number, op.threads.value.data)
            case _:
                self.access(state, task, op)

    def view(self, task: Task, op: Operation, value: SSAValue) -> View:
        """The buffers that an operand is."""
        found = task.known.get(value)
        if not isinstance(found, View):
            raise UnprovedError(op, "which buffer this is, is not known")
        return found

    def barrier(self, state: State, task: Task, op: Operation, value: SSAValue) -> Barrier:
        """The mbarrier that an operand is."""
        where = self.view(task, op, value)
        found = state.barriers.get((where.allocation, where.slot))
        if found is None:
            raise UnprovedError(op, f"'{name_of(self.allocations, where)}' is not known to be initialised")
        return found

    def arrive(self, task: Task, op: Operation, barrier: Barrier, count: int) -> None:
        """Arrive, and release what is known."""
        event = task.event(task.marks, op)
        knows = task.clock.copy()
        arrive(barrier, event, count, knows, task.release())

    def wait(self, state: State, task: Task, op: ttng.WaitBarrierOp) -> bool:
        """Wait at an mbarrier."""
        if not self.truth(state, task, op, op.pred):
            return True
        barrier = self.barrier(state, task, op, op.alloc)
        number = self.number(state, task, op, op.phase)
        parity = 1 if number == -1 else number
        if parity not in (0, 1):
            raise BrokenError(op, f"the parity of a phase is 0 or 1, found {parity}")
        return passes(barrier, task, op, parity)

    def wait_named(self, state: State, task: Task, op: tlx.NamedBarrierWaitOp) -> bool:
        """Arrive at a named barrier, and wait for the others."""
        if task.named is None:
            number = self.number(state, task, op, op.id)
            task.named = number
            barrier = state.named.setdefault(number, Named())
            barrier.waiting |= {task.number}
            arrive_named(barrier, task, op, number, op.threads.value.data)
        barrier = state.named[task.named]
        if (completed := barrier.passed.pop(task.number, None)) is None:
            return False
        join(task.clock, completed)
        task.named = None
        return True

    # Asynchronous operations -----------------------------------------------------------------------------------------

    def queue(self, task: Task, kind: str, *more: object) -> Agent:
        """The agent of the operations of a kind that a task has started."""
        return ("queue", task.number, kind, *more)

    def observe(self, task: Task, kind: str, pending: int) -> None:
        """Know that all but the last operations of a queue are over."""
        agent = self.queue(task, kind)
        join(task.clock, {agent: task.issued.get(agent, 0) - pending})

    def wait_for_copies(self, task: Task, op: ttg.AsyncWaitOp) -> None:
        """Know that all but the last groups of cp.async are over."""
        count = op.num.value.data
        if len(task.groups) > count:
            join(task.clock, {self.queue(task, "copy"): task.groups[len(task.groups) - count - 1]})
        task.groups = task.groups[max(len(task.groups) - count, 0) :]

    def access(self, state: State, task: Task, op: Operation) -> None:
        """Accesses to buffers, by the task or by what it starts."""
        effects, accesses = self.effects_of(op)
        accesses = _followed(op, effects, accesses)
        predicate = getattr(op, "pred", None)
        if predicate is not None and not self.truth(state, task, op, predicate):
            return
        end = effects.completes_on
        knows = task.clock.copy()
        if end is None:
            agent, event = None, task.event(task.accesses, op)
            knows[task.accesses] = task.step
        else:
            agent = self.agent_of(task, op, end)
            issued = task.issued[agent] = task.issued.get(agent, 0) + 1
            event = Event(agent, issued, op)
            if end is Group.WGMMA or isinstance(op, ttng.MMAOp):
                # Products of one task, on Blackwell those to one accumulator, follow each other, and copies before.
                knows[agent] = issued - 1
                copies = self.queue(task, *_SCALES)
                knows[copies] = task.issued.get(copies, 0)
        touched = [access for access in accesses if access.space in _SPACES and access.kind & _MEMORY]
        for access in touched:
            where = self.view(task, op, access.value)
            if isinstance(op, tlx.AsyncBulkLoadOp) and self.number(state, task, op, op.size) < _bytes_of(op.result):
                # Some of it: the rest stays as it was.
                where = replace(where, is_exact=False)
            is_new = access.operand == "d" and isinstance(op, ttng.MMAOp) and not self.truth(state, task, op, op.use_d)
            if Kind.READ in access.kind and not is_new:
                read(state, self.allocations, where, event, knows)
            if Kind.WRITE in access.kind:
                write(state, self.allocations, where, event, knows)
        if isinstance(op, ttng.MMAOp):
            for barrier, pred in zip(op.barriers, op.barrier_preds, strict=True):
                if self.truth(state, task, op, pred):
                    self.commit(state, task, op, barrier)
        if isinstance(end, str):
            self.complete(state, task, op, end, touched, event)

    def effects_of(self, op: Operation) -> tuple[Effects, tuple[OperandAccess, ...] | None]:
        """The effects of an operation, which are looked up once."""
        if (found := self._effects.get(op)) is None:
            found = self._effects[op] = effects_of(op), accesses_of(op)
        return found

    def commit(self, state: State, task: Task, op: Operation, value: SSAValue) -> None:
        """Let the end of all that tensor cores do for a task arrive at a barrier."""
        agent = self.queue(task, "tcgen05")
        task.issued[agent] = task.issued.get(agent, 0) + 1
        knows = task.clock.copy()
        released = task.release()
        join(released, {each: issued for each, issued in task.issued.items() if each[2] == "tcgen05"})
        arrive(self.barrier(state, task, op, value), Event(agent, task.issued[agent], op), 1, knows, released)

    def agent_of(self, task: Task, op: Operation, end: str | Group) -> Agent:
        """The agent of what reports its end in that way."""
        if end is Group.TCGEN05:
            if not isinstance(op, ttng.MMAOp):
                return self.queue(task, *_SCALES)
            where = self.view(task, op, op.d)
            return self.queue(task, "tcgen05", where.allocation, where.slot, where.box)
        if isinstance(end, Group):
            if end not in _QUEUES:
                raise UnprovedError(op, f"how the end of '{op.name}' is known is not followed")
            return self.queue(task, _QUEUES[end])
        where = self.view(task, op, getattr(op, end))
        return self.queue(task, "load", where.allocation, where.slot)

    def complete(
        self, state: State, task: Task, op: Operation, end: str, touched: Sequence[OperandAccess], event: Event
    ) -> None:
        """Complete the bytes that were written on a barrier; what the task itself has written is not released."""
        barrier = self.barrier(state, task, op, getattr(op, end))
        written = [access for access in touched if Kind.WRITE in access.kind]
        size = sum(_bytes_of(access.value) for access in written)
        if isinstance(op, tlx.AsyncBulkLoadOp):
            size = self.number(state, task, op, op.size)
            if not 0 < size <= _bytes_of(op.result):
                raise UnprovedError(op, f"{size} bytes are copied to a buffer of {_bytes_of(op.result)}")
        released: Clock = {agent: step for agent, step in task.clock.items() if agent[0] != "accesses"}
        released[event.agent] = event.step
        deliver(barrier, event, size, task.clock, released)


_MEMORY = Kind.READ | Kind.WRITE
_MEMORY_OR_END = _MEMORY | Kind.ATOMIC | Kind.ALLOC | Kind.FREE | Kind.PREFETCH | Kind.COMPLETE


def _followed(op: Operation, effects: Effects, accesses: tuple[OperandAccess, ...] | None) -> tuple[OperandAccess, ...]:
    """The accesses. Raises UnprovedError for those that are not followed."""
    if accesses is None:
        raise UnprovedError(op, f"what '{op.name}' does to shared memory and barriers is not known")
    if effects.sync & Sync.CLUSTER or any(_is_of_cluster(access) for access in accesses):
        raise UnprovedError(op, "this concerns other CTAs of the cluster, whose tasks are not followed")
    end = effects.completes_on
    known = _MEMORY_OR_END | Kind.ARRIVE if isinstance(op, ttng.MMAOp) else _MEMORY_OR_END
    if effects.sync & Sync.NAMED or any(access.kind & ~known for access in accesses):
        raise UnprovedError(op, f"how '{op.name}' synchronises is not followed")
    if (
        end is not None
        and effects.by not in (TMA, BULK_COPY)
        and end not in (Group.CP_ASYNC, Group.WGMMA, Group.TCGEN05)
    ):
        raise UnprovedError(op, f"how the end of '{op.name}' is known is not followed")
    return accesses


def _is_of_cluster(access: OperandAccess) -> bool:
    return access.cluster or access.space is Space.CLUSTER


def _bytes_of(buffer: SSAValue) -> int:
    type_ = ttg.memdesc_type(buffer.type)
    return prod(type_.shape) * type_.element_bits // 8
