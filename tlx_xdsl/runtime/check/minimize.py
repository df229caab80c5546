"""Search for redundant synchronisation of a kernel: each wait, arrival and fence is deleted in turn, and what is left
is checked.

Where runs show something wrong, or other results, the deletion is refuted, and the operation needed. Where they show
nothing, the proof for all trip counts is asked, if the kernel itself is proved. An operation is deleted where it stands
in the source, so all copies of a line are deleted together, and if it is needed, so may be less than all of a barrier:
its arrivals and its waits are then deleted together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.protocol.prove import Proof, Requirement, prove
from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base.effects import Kind, Sync, accesses_of, effects_of, sync_of
from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.users import users
from tlx_xdsl.text.diagnostics import Diagnostic, source_line, source_location

from .explore import Limits, explore
from .launches import Arrays
from .report import Sizes, Subject

PROOF_SECONDS = 20.0
"""Time for the proof of a deletion."""


@dataclass(frozen=True)
class Deletion:
    """Outcome of deleting some operations."""

    what: tuple[Deleted, ...]
    wrong: Diagnostic | None
    """What goes wrong then; None where no run shows anything."""
    runs: int = 0
    sizes: int = 0
    is_exhaustive: bool = False
    """Whether these were all orders that make a difference, at these sizes."""
    proof: Proof | None = None
    """The proof of what is left, where the whole is proved, too."""
    never_runs: bool = False
    """Whether no run has come to any of it."""
    required: tuple[Requirement, ...] = ()
    """Conditions of the proof that the proof of the whole kernel lacks."""

    @property
    def blind(self) -> str:
        """Return what the interpreter does not see of these operations."""
        return next((each.blind for each in self.what if each.blind), "")

    @property
    def is_proved(self) -> bool:
        """Return whether it is redundant for all trip counts."""
        return self.wrong is None and bool(self.proof) and not (self.blind or self.never_runs or self.required)

    def __str__(self) -> str:
        """Return where it is, and the verdict."""
        first = self.what[0]
        rest = f" (with {', '.join(each.where for each in self.what[1:])})" if len(self.what) > 1 else ""
        return f"{first.where}: {self.verdict}: {first.text}{rest}"

    @property
    def verdict(self) -> str:
        """Return whether it is needed, in a line."""
        if self.wrong is not None:
            return f"needed, without it: {self.wrong.message}"
        found = f"no finding in {self.runs} runs at {self.sizes} size{'s' * (self.sizes != 1)}"
        if self.is_exhaustive:
            found += ", all orders"
        if self.never_runs:
            return f"perhaps redundant, it never runs at {'this size' if self.sizes == 1 else 'these sizes'}"
        if self.blind:
            return f"perhaps redundant, {found}, but {self.blind}"
        if self.required:
            return f"perhaps redundant, {found}, but only {self.required[0]}"
        if self.proof:
            turns = f"loops of {', '.join(self.proof.constants)}" if self.proof.constants else "all trip counts"
            return f"redundant, proved for {turns}; {found}"
        return f"perhaps redundant, {found}"


@dataclass(frozen=True)
class Minimized:
    """The verdicts on all synchronisation of a kernel."""

    deletions: tuple[Deletion, ...]
    together: Deletion | None
    """Several that can all be deleted at once."""
    unjudged: tuple[Deleted, ...]
    """Barriers between the threads of one task, which runs as a whole here."""
    proof: Proof | None
    """That of the kernel as it is."""

    @property
    def redundant(self) -> list[Deletion]:
        """Return what no run misses."""
        return [each for each in self.deletions if each.wrong is None]

    def __str__(self) -> str:
        """Return the verdicts, one in a line, and a line that sums up."""
        lines = [str(each) for each in self.deletions]
        lines += [f"{each.where}: not judged, a task runs as a whole: {each.text}" for each in self.unjudged]
        if self.together is not None:
            lines.append(f"together: {', '.join(each.where for each in self.together.what)}: {self.together.verdict}")
        needed = sum(each.wrong is not None for each in self.deletions)
        return "\n".join([*lines, f"{len(self.deletions)} deletions tried: {needed} needed, {len(self.redundant)} not"])


def minimize(subject: Subject, stages: Sequence[str], seconds: float) -> Minimized:
    """Delete each operation that synchronises, at all sizes and stages, for at most `seconds` each.

    Raises ValueError where something is wrong with the kernel as it is.
    """
    return _Search(subject, stages, seconds).found()


class _Search:
    def __init__(self, subject: Subject, stages: Sequence[str], seconds: float):
        self.subject = subject
        self.stages = stages
        self.seconds = seconds

    def found(self) -> Minimized:
        """All verdicts."""
        limits = Limits(self.seconds, self.stages, 1, every=True)
        whole = explore(self.subject.scopes(), self.subject.settings, limits)
        if not whole:
            raise InputError(f"something is wrong with the kernel as it is:\n{whole.findings[0]}")
        self.sizes = [each.sizes for each in whole.cases if each.stage == self.stages[0]]
        self.results = self._results(None)
        module = self.subject.module(self.sizes[-1])
        self.proof = self._proof(module)
        judged = [self._judged((each,)) for each in deleted_by(module)]
        redundant = {each.what[0] for each in judged if each.wrong is None}
        sets = [each for each in sets_of(module) if not redundant.issuperset(each)]
        judged += [each for each in map(self._judged, sets) if each.wrong is None]
        return Minimized(tuple(judged), self._together(judged), unjudged_in(module), self.proof)

    def _together(self, judged: Sequence[Deletion]) -> Deletion | None:
        """The most that can be deleted at once, found from the first one on."""
        redundant = [each for each in judged if each.wrong is None and not each.blind]
        best: Deletion | None = redundant[0] if redundant else None
        for each in redundant[1:]:
            assert best is not None
            tried = self._judged(tuple(dict.fromkeys((*best.what, *each.what))))
            best = tried if tried.wrong is None else best
        return best if best is not None and len(redundant) > 1 and len(best.what) > 1 else None

    def _judged(self, what: tuple[Deleted, ...]) -> Deletion:
        """Delete and check."""

        def change(module: ModuleOp) -> None:
            delete(module, what)

        scopes = [self.subject.scope(at, change) for at in self.sizes]
        limits = Limits(self.seconds, self.stages, 1, stops=True, every=True)
        report = explore(scopes, self.subject.settings, limits)
        if report.findings:
            return Deletion(what, report.findings[0].diagnostic, report.runs)
        if (other := self._differs(change)) is not None:
            return Deletion(what, other, report.runs)
        proof, required = None, ()
        if self.proof:
            module = self.subject.module(self.sizes[-1])
            delete(module, what)
            proof = self._proof(module)
            known = {each.loop for each in self.proof.required}
            required = tuple(each for each in proof.required if each.loop not in known) if proof else ()
        exhaustive = not any(case.unexplored for case in report.cases)
        sizes = len({str(case.sizes) for case in report.cases})
        return Deletion(what, None, report.runs, sizes, exhaustive, proof, not self._comes_to(what), required)

    def _comes_to(self, what: tuple[Deleted, ...]) -> bool:
        """Return whether a run at one of the sizes comes to one of these operations."""

        def change(module: ModuleOp) -> None:
            forbid(module, what)

        for at in self.sizes:
            launch = self.subject.launchable(at, change)
            arrays = Arrays(launch.arrays)
            before = arrays.state()
            try:
                launch.run({"stage": self.stages[0]})
            except Fault:
                return True
            finally:
                arrays.restore(before)
        return False

    def _proof(self, module: ModuleOp) -> Proof | None:
        proofs = prove(module, seconds=PROOF_SECONDS)
        return next((each for each in proofs if not each), proofs[0] if proofs else None)

    def _results(self, change: Callable[[ModuleOp], None] | None) -> list[Mapping[str, NDArray[np.uint8]]]:
        """Return what the arrays hold afterwards, at each size."""
        found: list[Mapping[str, NDArray[np.uint8]]] = []
        for at in self.sizes:
            launch = self.subject.launchable(at, change)
            arrays = Arrays(launch.arrays)
            before = arrays.state()
            launch.run({"stage": self.stages[0]})
            found.append({name: np.frombuffer(each.tobytes(), np.uint8) for name, each in launch.arrays.items()})
            arrays.restore(before)
        return found

    def _differs(self, change: Callable[[ModuleOp], None]) -> Diagnostic | None:
        try:
            after = self._results(change)
        except (CompilationError, InputError, InputTypeError, InputOverflowError) as error:
            return Diagnostic("error", str(error), None)
        for at, one, other in zip(self.sizes, self.results, after, strict=True):
            for name in one:
                if not np.array_equal(one[name], other[name]):
                    return Diagnostic("error", f"'{name}' has other values{_at(at)}", None)
        return None


def _at(sizes: Sizes) -> str:
    return "".join(f" {name}={size}" for name, size in sizes.items())


# --- deletions --------------------------------------------------------------------------------------------------------
#
# The operations of a kernel that synchronise and do nothing else, by their places, and how to delete them.


_JUDGED = Sync.NAMED | Sync.CLUSTER | Sync.FENCE | Sync.FENCE_PROXY
_ARRIVES_OR_WAITS = Kind.ARRIVE | Kind.WAIT


def _waits_for_its_own(op: Operation) -> bool:
    """Return whether an operation waits for asynchronous operations of its task."""
    if isinstance(op, ttg.AsyncWaitOp):
        return True
    return isinstance(op, ttng.WarpGroupDotWaitOp | ttng.AsyncTMAStoreWaitOp)


def _orders_threads(op: Operation) -> bool:
    """Return whether an operation orders the threads of a task, which runs as a whole here."""
    if isinstance(op, ttng.TMEMWaitOp):
        return True
    return isinstance(op, ttg.BarrierOp | ttg.LocalBarrierOp)


@dataclass(frozen=True)
class Deleted:
    """The operations of one kind at one place."""

    where: str
    """Its `file:line:col`."""
    name: str
    """Of the operations."""
    text: str
    """The line."""
    blind: str
    """Why it may be needed although no run misses it: what the interpreter does not see of such operations."""


def deleted_by(module: ModuleOp) -> list[Deleted]:
    """All that can be deleted, in the order of the code; each place once."""
    found = {_deleted(op): None for op in module.walk() if synchronises(op)}
    return [each for each in found if each is not None]


def unjudged_in(module: ModuleOp) -> tuple[Deleted, ...]:
    """Return what orders the threads of one task, which no run misses."""
    found = {_deleted(op): None for op in module.walk() if _orders_threads(op)}
    return tuple(each for each in found if each is not None)


def synchronises(op: Operation) -> bool:
    """Return whether an operation orders tasks and asynchronous operations, and does nothing else."""
    if _waits_for_its_own(op):
        return True
    accesses = accesses_of(op)
    if _orders_threads(op) or accesses is None or op.regions or effects_of(op).completes_on is not None:
        return False
    if not accesses:
        return bool(sync_of(op) & _JUDGED) and not op.results
    return all(each.kind & _ARRIVES_OR_WAITS and not each.kind & ~_ARRIVES_OR_WAITS for each in accesses)


def _deleted(op: Operation) -> Deleted | None:
    place = source_location(op.location)
    if place is None:
        return None
    sync = sync_of(op)
    blind = ""
    if Sync.FENCE_PROXY in sync:
        blind = "whether the async proxy sees what threads have written to global memory is not followed"
    elif sync & Sync.FENCE:
        blind = "all threads see one memory here, and what a fence does beside ordering is not followed"
    return Deleted(str(place), op.name, (source_line(place) or op.name).strip(), blind)


def sets_of(module: ModuleOp) -> list[tuple[Deleted, ...]]:
    """Return operations to delete together: arrivals and waits at the mbarriers of an allocation, or a named barrier.

    An mbarrier at which asynchronous operations complete is left out: without it they have none.
    """
    found: dict[tuple[Deleted, ...], None] = {}
    for op in module.walk():
        if any(Kind.ALLOC in each.kind for each in accesses_of(op) or ()):
            found[_unique(_barrier_users(op))] = None
    named: dict[int, list[Operation]] = {}
    for op in module.walk():
        if isinstance(op, tlx.NamedBarrierWaitOp | tlx.NamedBarrierArriveOp) and (number := _number(op.id)) is not None:
            named.setdefault(number, []).append(op)
    found.update({_unique(ops): None for ops in named.values()})
    return [each for each in found if len(each) > 1]


def _barrier_users(allocation: Operation) -> Iterator[Operation]:
    """Yield the arrivals and waits at the mbarriers of an allocation, if no asynchronous operation completes there."""
    ops = [use.operation for use in users(allocation)]
    if any(_completes(op) for op in ops):
        return
    yield from (op for op in ops if synchronises(op))


def _completes(op: Operation) -> bool:
    """Return whether what an operation starts completes at an mbarrier among its operands."""
    kinds = [each.kind for each in accesses_of(op) or ()]
    return any(Kind.COMPLETE in kind for kind in kinds) or (
        not synchronises(op) and any(Kind.ARRIVE in kind for kind in kinds)
    )


def _unique(ops: Sequence[Operation] | Iterator[Operation]) -> tuple[Deleted, ...]:
    return tuple(each for each in {_deleted(op): None for op in ops} if each is not None)


def _number(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _places(module: ModuleOp, what: Sequence[Deleted]) -> list[Operation]:
    wanted = {(each.where, each.name) for each in what}
    found = [(op, source_location(op.location)) for op in module.walk() if synchronises(op)]
    return [op for op, place in found if place is not None and (str(place), op.name) in wanted]


NEVER = "this is not to run"
"""What is asserted where `forbid` says so."""


def forbid(module: ModuleOp, what: Sequence[Deleted]) -> None:
    """Let a run fail that comes to one of the operations."""
    for op in _places(module, what):
        block = op.parent_block()
        assert block is not None
        no = arith.ConstantOp(IntegerAttr(0, 1))
        block.insert_ops_before([no, tt.AssertOp.build(operands=[no.result], properties={"message": _NEVER})], op)


_NEVER = StringAttr(NEVER)


def delete(module: ModuleOp, what: Sequence[Deleted]) -> None:
    """Delete the operations from a module; the results of waits are what they wait for."""
    for op in _places(module, what):
        if isinstance(op, ttg.AsyncWaitOp):
            if not op.async_token and op.ret_token.uses:
                continue
            replacements = [op.async_token[0] if op.async_token else None]
        else:
            replacements = [*op.operands[: len(op.results)]]
        for result, value in zip(op.results, replacements, strict=True):
            if value is not None:
                result.replace_all_uses_with(value)
        op.detach()
        op.erase()
