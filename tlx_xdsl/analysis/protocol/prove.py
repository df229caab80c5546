"""The proof: a search through all states of a thread block's tasks, up to how many turns of loops are over.

One schedule is searched, in which each task goes on until it waits. What arrives, waits and accesses is checked against
everything that is not ordered before it, so what one schedule does without fault all schedules do: they are the same
partial order. Where the path depends on numbers that are not known, such as the bounds of loops, it splits; equal
expressions in several tasks have equal numbers. Turns of loops are counted from the slowest task on, modulo a period,
so that the states are finite in number where the tasks do not run apart.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, lcm
from typing import Literal

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import Group, Kind, Space, accesses_of, effects_of, num_ctas_of, num_warps_of
from tlx_xdsl.text.diagnostics import Diagnostic, error_at, source_location

from .barriers import BrokenError, unfinished
from .buffers import Allocation, name_of, shared_places
from .changes import Changes
from .code import Code, UnprovedError, codes_of, only_block, roots_of
from .demand import Demands, constant, is_followed
from .facts import (
    EarlierQuestionError,
    EarlierSplitError,
    Facts,
    ForgottenError,
    LongerPeriodError,
    NewLimitError,
    Questions,
    SplitError,
    TooNearError,
    may_be_anything,
)
from .machine import Machine
from .quotient import is_over, reduce
from .state import State, Task
from .values import Atom, Part

MOST_STATES = 60_000
"""States that are searched at most."""
MOST_PERIOD = 1 << 10
"""The longest period of turns: a product of the lengths of all rings that one counter serves, times two."""
MOST_REACH = 28
"""Turns of a loop by which one task may be ahead of another that is to come."""
SECONDS = 60.0
"""Seconds of a processor for the proof of a module."""

Answer = Literal["proved", "refuted", "unproved"]


@dataclass(frozen=True)
class Requirement:
    """A loop must turn at least once, or come to an end."""

    loop: str
    """Its place."""
    otherwise: Diagnostic | None
    """What goes wrong where it does not turn; None for a loop that waits for what others write to global memory."""

    def __str__(self) -> str:
        """Return the condition as a report says it."""
        if self.otherwise is None:
            return f"where the loop at {self.loop} ends, which waits for what others write to global memory"
        return f"where the loop at {self.loop} turns at least once; else: {self.otherwise.message}"


@dataclass(frozen=True)
class Proof:
    """Result of the proof of a kernel's protocol."""

    kernel: str
    answer: Answer
    reason: Diagnostic | None
    """What goes wrong, or the line that stops the proof; None where all is proved."""
    states: int
    seconds: float
    constants: tuple[str, ...] = ()
    """The loops with a constant number of turns: the proof is for that number."""
    steps: tuple[int, ...] = ()
    """What numbers are divided by that say how often loops turn: a turn more is so much more."""
    tasks: int = 1
    required: tuple[Requirement, ...] = ()
    """What the proof is for only."""
    unseen: tuple[str, ...] = ()
    """What was not looked at."""

    def __bool__(self) -> bool:
        """True where all is proved."""
        return self.answer == "proved"


PROVED = (
    "no deadlock",
    "no unordered access to shared memory, and no read of what was not written or is overwritten",
    "arrivals, bytes and waits of each barrier are for one phase in all schedules",
)
"""What a proof says."""
ASSUMPTIONS = (
    "integer arguments are not negative, and no sum or product of 32 or 64 bits wraps around",
    "different arguments point to different memory, and no one else writes what loops and conditions are loaded from",
    "loops in which nothing synchronises come to an end",
)
"""What a proof assumes."""


def unseen_in(function: tt.FuncOp) -> tuple[str, ...]:
    """Return what a proof of a kernel does not look at."""
    found = ["numbers and layouts", "the threads of a task among each other"]
    effects = [(op, effects_of(op), accesses_of(op) or ()) for op in function.walk()]
    accesses = [access for _, _, each in effects for access in each if access.kind & (Kind.READ | Kind.WRITE)]
    if any(access.space is Space.GLOBAL for access in accesses):
        found.append("global memory")
    if any(access.is_async and access.space is not Space.GLOBAL for access in accesses):
        found.append("fences between proxies")
    if any(each.completes_on is Group.WGMMA for _, each, _ in effects):
        found.append("results of wgmma in registers")
    return tuple(found)


def prove(module: ModuleOp, *, seconds: float = SECONDS, states: int = MOST_STATES) -> list[Proof]:
    """Prove the synchronisation of each kernel of a module: one `Proof` each, in which every failure has its line.

    Proved is, for all values of arguments and all grids: no schedule of the tasks deadlocks, no buffer is read before
    it is written or written while it is read or written, no phase of a barrier gets too many or too few arrivals or
    bytes, and each wait is for one phase in all schedules (`PROVED`, under `ASSUMPTIONS`). `Proof.unseen` names what
    was not looked at. A search ends without an answer after so many seconds of a processor for a kernel, or so many
    states: the latter is the same on all machines.
    """
    return [
        _prove(module, op, seconds, states)
        for op in module.walk()
        if isinstance(op, tt.FuncOp) and op.is_kernel and op.body.blocks
    ]


def _prove(module: ModuleOp, function: tt.FuncOp, seconds: float, states: int) -> Proof:
    began = time.process_time()
    search: _Search | None = None
    answer: Answer = "proved"
    reason: Diagnostic | None = None
    required: dict[tuple[Part, ...], Requirement] = {}
    try:
        search = _Search(module, function, began + seconds, states)
        if (num_ctas_of(function) or 1) > 1:
            raise UnprovedError(function, "the tasks of several CTAs are not followed")
        while (broken := search.broken(required)) is not None:
            diagnostic = _described(broken)
            idle = [(parts, loop) for parts, loop in search.idle_loops() if parts not in required]
            if not idle:
                is_certain = isinstance(broken, BrokenError) and may_be_anything(search.guesses)
                answer, reason = "refuted" if is_certain else "unproved", diagnostic
                break
            # Whoever launches it with a loop that does not turn is not to expect much: the others are to be sure.
            for parts, loop in idle:
                required[parts] = Requirement(_place(loop), diagnostic)
    except UnprovedError as error:
        answer, reason = "unproved", _described(error)
    ends = [] if search is None else [Requirement(_place(loop), None) for loop, _ in search.waits]
    return Proof(
        function.sym_name.data, answer, reason, 0 if search is None else search.states, time.process_time() - began,
        tuple(_constant_loops(function)), () if search is None else search.steps(),
        1 if search is None else len(search.codes), (*required.values(), *ends), unseen_in(function),
    )  # fmt: skip


def _described(error: BrokenError | UnprovedError) -> Diagnostic:
    if isinstance(error, UnprovedError):
        return _diagnostic(error.op, error.reason)
    return _diagnostic(error.op, error.message, [f"{what} at {_place(op)}" for what, op in error.notes])


def _diagnostic(op: Operation, message: str, notes: Sequence[str] = ()) -> Diagnostic:
    error = error_at(op, message, notes)
    return Diagnostic("error", error.message, error.location, error.notes)


def _place(op: Operation) -> str:
    found = source_location(op.location)
    return f"'{op.name}'" if found is None else str(found)


def _constant_loops(function: tt.FuncOp) -> list[str]:
    """The loops whose number of turns is a constant, and in which something synchronises."""
    found: list[str] = []
    for op in function.walk():
        if isinstance(op, scf.ForOp) and any(isinstance(each, ttng.WaitBarrierOp) for each in op.body.walk()):
            numbers = [constant(value) for value in (op.lb, op.ub, op.step)]
            match numbers:
                case [int(low), int(high), int(by)] if by > 0:
                    found.append(f"{len(range(low, high, by))} at {_place(op)}")
                case _:
                    pass
    return found


def _turns_done(task: Task) -> tuple[float, ...]:
    """Return how far a task is: who is least far goes on first, so that tasks stay near each other."""
    if not task.turns:
        return (-inf if task.has_started and task.code.loops_after(task.at) else inf,)
    return tuple(turn.at for turn in task.turns)


@dataclass
class _Search:
    module: ModuleOp
    function: tt.FuncOp
    until: float
    most_states: int
    states: int = 0
    failed: State | None = None
    """The state in which something went wrong."""
    guesses: set[Atom] = field(default_factory=set[Atom])
    """The atoms that paths were split by."""
    codes: list[Code] = field(default_factory=list[Code])
    waits: list[tuple[Operation, Operation]] = field(default_factory=list[tuple[Operation, Operation]])
    """Loops that wait for what others write to global memory, and the accesses to that."""

    def __post_init__(self) -> None:
        places = shared_places(self.module)
        allocations: list[Allocation] = []
        for op in self.function.walk():
            allocated = [each for each in accesses_of(op) or () if Kind.ALLOC in each.kind]
            if allocated and isinstance(op.results[0].type, ttg.MemDescType):
                region, spans = places.get(op, (None, ()))
                allocations.append(Allocation(op, op.results[0].name_hint or "buffer", region, spans))
        only_block(self.function, self.function.body)
        demands = Demands(self.function, roots_of(self.function))
        changes = Changes(self.function, demands)
        if (changed := changes.load()) is not None:
            load, op = changed
            raise UnprovedError(
                load, f"the synchronisation depends on this, and '{op.name}' at {_place(op)} may change it"
            )
        codes = codes_of(self.function, demands, num_warps_of(self.function.body.block.first_op or self.function) or 4)
        self.codes = list(codes.values())
        self.waits = changes.waits()
        if self.waits and len(codes) > 1:
            raise UnprovedError(self.waits[0][1], "waiting for what happens in global memory is not followed")
        self.machine = Machine(self.function, codes, allocations, demands)
        self.demands = demands

    def broken(self, required: Iterable[tuple[Part, ...]]) -> BrokenError | UnprovedError | None:
        """Return what goes wrong, or stops the search, where these sums are positive; None if nothing does."""
        self.machine.joins = False
        broken = self.attempt(required)
        if broken is not None and any(len(constants) > 1 for constants in self.machine.ends.values()):
            failed, self.machine.joins = self.failed, True
            if self.attempt(required) is None:
                return None
            self.failed = failed
        return broken

    def attempt(self, required: Iterable[tuple[Part, ...]]) -> BrokenError | UnprovedError | None:
        """The same, with the turns of loops counted as the machine counts them now."""
        questions = Questions()
        while True:
            try:
                self.search(questions, required)
                return None
            except (BrokenError, UnprovedError) as error:
                return error
            except LongerPeriodError as error:
                questions = replace(questions, period=lcm(questions.period, error.modulus))
            except TooNearError as error:
                if questions.reach >= MOST_REACH:
                    return UnprovedError(error.op, "how far other tasks are ahead when one comes here is not bounded")
                questions = replace(questions, reach=2 * questions.reach + 4)
            except ForgottenError:
                if questions.lag >= MOST_REACH:
                    return UnprovedError(self.function, "this depends on numbers of earlier turns of a loop")
                questions = replace(questions, lag=2 * questions.lag + 1)
            except EarlierSplitError as error:
                questions = replace(questions, moduli={**questions.moduli, error.atom: error.modulus})
            except NewLimitError as error:
                questions = replace(questions, limits=questions.limits | error.atoms)
            except EarlierQuestionError as error:
                least = questions.least.get(error.parts, frozenset()) | {error.least}
                questions = replace(questions, least={**questions.least, error.parts: least})
            if questions.period > MOST_PERIOD:
                return UnprovedError(self.function, f"the turns repeat after more than {MOST_PERIOD} only")

    def idle_loops(self) -> list[tuple[tuple[Part, ...], Operation]]:
        """The loops that do not turn at all where something went wrong."""
        if self.failed is None:
            return []
        known = self.failed.facts.bounds
        return [(parts, loop) for parts, loop in self.machine.limits.items() if known.get(parts, (0, 1))[1] <= 0]

    def steps(self) -> tuple[int, ...]:
        """The divisors in the numbers of turns."""
        atoms = [atom for parts in self.machine.limits for atom, _ in parts]
        return tuple(sorted({atom.arguments[1] for atom in atoms if atom.kind == "quotient"}))

    def search(self, questions: Questions, required: Iterable[tuple[Part, ...]]) -> None:
        """Search all states with these questions."""
        self.failed = None
        first = self.first(questions)
        first.facts.bounds.update((parts, (1, inf)) for parts in required)
        seen: set[Hashable] = {self.reduced(first)}
        todo = deque([first])
        while todo:
            state = todo.popleft()
            self.states = len(seen)
            self.spend(state)
            for each in self.followers(state):
                key = self.reduced(each)
                if key not in seen:
                    seen.add(key)
                    todo.append(each)

    def reduced(self, state: State) -> Hashable:
        """Bring a state to its smallest form."""
        return reduce(state, self.machine.values, self.machine.most_pending)

    def first(self, questions: Questions) -> State:
        """The state before the kernel."""
        tasks = [Task(code, number) for number, code in enumerate(self.codes)]
        tasks[0].has_started = True
        block = self.function.body.block
        for number, argument in enumerate(block.args):
            if is_followed(argument) and argument in self.demands:
                tasks[0].known[argument] = self.machine.values.of("argument", number)
        return State(Facts(questions), tasks)

    def followers(self, state: State) -> list[State]:
        """The states where the path splits next, none at the end.

        Raises BrokenError for a deadlock, too.
        """
        before, after = state, state.copy()
        while True:
            try:
                if not any(self.machine.turn(after, task) for task in sorted(after.tasks, key=_turns_done)):
                    break
            except SplitError as error:
                self.guesses.update(error.atoms)
                if any(is_over(before, atom) for atom in error.atoms):
                    raise ForgottenError from error
                answers: list[State] = []
                for facts in error.answers:
                    answer = before.copy()
                    answer.facts = facts
                    answers.append(answer)
                return answers
            except (BrokenError, UnprovedError):
                self.failed = after
                raise
            self.spend(after)
            before = after.copy()
        self.failed = after
        if not all(task.has_ended or not task.has_started for task in after.tasks):
            raise self.deadlock(after)
        if (broken := unfinished(after)) is not None:
            raise broken
        self.failed = None
        return []

    def deadlock(self, state: State) -> BrokenError:
        """The report of a state in which no task goes on: first a wait whose barrier lacks the least."""
        waits: list[tuple[Operation, str]] = []
        for task in state.tasks:
            if not task.has_started or task.has_ended:
                continue
            op = task.code.steps[task.at].op
            if isinstance(op, ttng.WaitBarrierOp):
                where = self.machine.view(task, op, op.alloc)
                barrier = state.barriers[where.allocation, where.slot]
                lacks = [f"{barrier.pending} of {barrier.count} arrivals"] if barrier.pending else []
                lacks += [f"{barrier.bytes} bytes"] if barrier.bytes > 0 else []
                name = name_of(self.machine.allocations, where)
                waits.append((op, f"{task.code.name} waits at '{name}', which lacks {' and '.join(lacks)}"))
            elif isinstance(op, tlx.NamedBarrierWaitOp):
                waits.append((op, f"{task.code.name} waits at named barrier {task.named}"))
        if not waits:
            return BrokenError(self.function, "deadlock")
        (op, message), *others = waits
        return BrokenError(op, f"deadlock: {message}", [(f"and {more}", each) for each, more in others])

    def spend(self, state: State) -> None:
        """Raises UnprovedError where time is up."""
        if self.states > self.most_states or time.process_time() > self.until:
            raise UnprovedError(self.busiest(state), f"no end after {self.states} states: tasks may run apart here")

    def busiest(self, state: State) -> Operation:
        """The loop in which a task has done most turns."""
        turns = [turn for task in state.tasks for turn in task.turns]
        return max(turns, key=lambda turn: turn.at).loop if turns else self.function
