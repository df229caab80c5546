"""The operations of a kernel that synchronise and do nothing else, by their places, and how to delete them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base.effects import Kind, Sync, accesses_of, effects_of, sync_of
from tlx_xdsl.interpreter.users import users
from tlx_xdsl.text.diagnostics import source_line, source_location

_JUDGED = Sync.NAMED | Sync.CLUSTER | Sync.FENCE | Sync.FENCE_PROXY
_ARRIVES_OR_WAITS = Kind.ARRIVE | Kind.WAIT


def _waits_for_its_own(op: Operation) -> bool:
    """Whether an operation waits for asynchronous operations of its task."""
    if isinstance(op, ttg.AsyncWaitOp):
        return True
    return isinstance(op, ttng.WarpGroupDotWaitOp | ttng.AsyncTMAStoreWaitOp)


def _orders_threads(op: Operation) -> bool:
    """Whether an operation orders the threads of a task, which runs as a whole here."""
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
    """What orders the threads of one task, which no run misses."""
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
    """What is worth deleting together: all arrivals and waits at the mbarriers of an allocation, or a named barrier.

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
    """Those that only synchronise, where no others but initialisations use it."""
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
