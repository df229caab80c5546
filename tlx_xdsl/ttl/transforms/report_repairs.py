"""`ttl-report-repairs`: say what a kernel leaves out, or has in an order that hangs, and later passes put right.

```mlir
%view = ttl.cb_reserve %cb : ...                // remark: this block of 'a' is reserved, but not pushed
%xf = ttl.copy %a[%i, %j], %view : ...          // remark: this copy is not waited for before 'a' is pushed
```
The module stays as it is. On a copy of it, the steps and the waits that are missing are inserted as
`ttl-insert-synchronization` does, and the protocol between the threads is checked. What that refuses, but accepts when
the passes of the schedule have moved transfers, works by their grace alone: that is a remark, too. A kernel that
leaves nothing to the compiler runs with `schedule=false`, and under other compilers of the language.

With `strict`, a repair is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import affine
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import Diagnostic, diagnostic_at, error_at, report_again, source_line
from tlx_xdsl.transforms.rewriting import ops_of

from ..analysis.protocol import check_protocol, name_of, place_of
from ..analysis.transfers import loops_around
from ..dialects.ttl import (
    ADDED_STORE,
    AcquireOp,
    CBOp,
    CopyOp,
    CreateCBOp,
    DMABarrierOp,
    KernelOp,
    PipeType,
    ReleaseOp,
    SemaphoreOp,
    StoreOp,
    ThreadReturnOp,
    WaitOp,
    acquisition_of,
)
from .block_releases import complete_releases
from .infer_pipe_semaphores import InferPipeSemaphoresPass
from .insert_synchronization import InsertSynchronizationPass
from .transfer_waits import insert_waits

STRICT = "this is an error because of 'strict': without it, the compiler "


@dataclass(frozen=True)
class ReportRepairsPass(ModulePass):
    """Report the repairs of every kernel, or refuse them."""

    name = "ttl-report-repairs"

    strict: bool = False
    """Whether a repair is an error."""
    schedule: bool = True
    """Whether the passes follow that move transfers."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Report; the module stays as it is.

        Raises CompilationError for the first repair, where it is strict.
        """
        written = op.clone()
        try:
            for repair in _missing(written):
                repair.report(strict=self.strict)
            # Without the schedule, what is checked here is checked again when it counts.
            if self.schedule and any(map(_can_move_steps, ops_of(written, KernelOp))):
                InferPipeSemaphoresPass().run(written)
                for kernel in ops_of(written, KernelOp):
                    check_protocol(kernel)
        except _Refused as refused:
            raise refused.error from None
        except CompilationError as error:
            if self.schedule and self._is_mended(ctx, op.clone()):
                _report_mended(error, strict=self.strict)

    def _is_mended(self, ctx: Context, module: ModuleOp) -> bool:
        """Return whether a module is right after the passes of the schedule; if not, these will say what is wrong."""
        from .pipeline import schedule_passes

        try:
            for each in (InferPipeSemaphoresPass(), *schedule_passes(), InsertSynchronizationPass()):
                each.apply(ctx, module)
        except CompilationError:
            return False
        return True


class _Refused(Exception):
    def __init__(self, error: CompilationError):
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True)
class _Repair:
    op: Operation
    fact: str
    remedy: str
    done: str
    notes: tuple[str, ...] = ()

    def report(self, *, strict: bool) -> None:
        if strict:
            notes = (*self.notes, f"{STRICT}{self.done}")
            raise _Refused(error_at(self.op, f"{self.fact}: {self.remedy}", notes))
        report_again(diagnostic_at("remark", self.op, f"{self.fact}: the compiler {self.done}", self.notes))


def _missing(module: ModuleOp) -> Iterator[_Repair]:
    """The steps and waits that a module leaves out, which gets them."""
    for store in ops_of(module, StoreOp):
        if ADDED_STORE in store.attributes:
            yield _unstored(store)
    for kernel in ops_of(module, KernelOp):
        added = complete_releases(kernel)
        yield from (_unreleased(acquire, release) for release, acquire in added.items() if not _is_own(acquire))
        # A barrier for another transfer may do for those whose handle has no use.
        threads = [thread for thread in kernel.threads if not ops_of(thread, DMABarrierOp)]
        forgotten = [copy for each in threads for copy in ops_of(each, CopyOp) if not any(copy.results[0].uses)]
        # A pipe's own protocol waits for those of a group, one after the other.
        grouped = {
            copy
            for thread in kernel.threads
            if thread not in threads
            for copy in ops_of(thread, CopyOp)
            if isinstance(copy.far.type, PipeType)
        }
        needed = {} if all(map(_is_awaited_at_once, ops_of(kernel, CopyOp))) else insert_waits(kernel)
        for copy in dict.fromkeys((*forgotten, *(each for each in needed if each not in grouped))):
            before = needed.get(copy)
            yield _unawaited(copy, before, is_added=before in added)


def _is_own(acquire: AcquireOp) -> bool:
    """Return whether a block is of a buffer of the compiler's own, which no kernel can give back."""
    made = acquire.cb.owner
    return isinstance(made, CreateCBOp) and made.internal is not None


def _is_awaited_at_once(copy: CopyOp) -> bool:
    """Return whether a wait for a copy follows before anything that could have to come after the copy.

    So it is in most kernels, and no dependence need be computed.
    """
    op = copy.next_op
    while op is not None and is_side_effect_free(op):
        op = op.next_op
    return isinstance(op, WaitOp) and op.handle is copy.results[0]


def _can_move_steps(kernel: KernelOp) -> bool:
    """Return whether the schedule can change the order or number of a thread's steps in a way that ends a deadlock.

    It fuses neighbouring loops, and takes a block once that a loop reads again and again. Batches are made only of
    steps in lockstep, which wait for nothing that comes later.
    """
    for block in (region.block for op in kernel.walk() for region in op.regions if region.blocks):
        if sum(isinstance(op, affine.ForOp) and bool(ops_of(op, CBOp)) for op in block.ops) > 1:
            return True
    return any(
        isinstance(loop, affine.ForOp) and not _depends_on(loop.body.block.args[0], copy.indices)
        for copy in ops_of(kernel, CopyOp) if not isinstance(copy.far.type, PipeType)
        for loop in loops_around(copy)
    )  # fmt: skip


def _depends_on(index: SSAValue, values: Sequence[SSAValue]) -> bool:
    """Return whether one of some values is computed of a loop's index."""
    owners = (value.owner for value in values if value is not index)
    return index in values or any(
        isinstance(owner, Operation) and _depends_on(index, owner.operands) for owner in owners
    )


def _unreleased(acquire: AcquireOp, release: ReleaseOp) -> _Repair:
    did, do = ("reserved", "push") if acquire.PRODUCES else ("waited for", "pop")
    done = f"{do}{'es' if do == 'push' else 's'} it after its last use"
    last = release.prev_op
    notes = () if last is None or last is acquire else (f"its last use is at {place_of(last)}",)
    fact = f"this block of {name_of(acquire.cb)} is {did}, but not {do}{'ed' if do == 'push' else 'ped'}"
    return _Repair(acquire, fact, f"{do} it after its last use", done, notes)


def _unstored(store: StoreOp) -> _Repair:
    acquire = acquisition_of(store.view)
    fact = f"this block of {name_of(acquire.cb)} is reserved and pushed, but nothing is stored into it"
    done = "stores the one value of its type that nothing uses"
    notes = (f"it is computed at {place_of(store.value.owner)}",) if isinstance(store.value.owner, Operation) else ()
    return _Repair(acquire, fact, "store the result", done, notes)


def _unawaited(copy: CopyOp, before: Operation | None, *, is_added: bool) -> _Repair:
    match before:
        case ReleaseOp():
            name, did = name_of(before.cb), "pushed" if before.PRODUCES else "popped"
            when = f" before {name} is {did}"
            notes = () if is_added else (f"it is {did} at {place_of(before)}",)
        case SemaphoreOp():
            when, notes = " before a semaphore is changed", (f"it is changed at {place_of(before)}",)
        case ThreadReturnOp() | None:
            when, notes = "", ()
        case _:
            when = " before something that must come after it"
            notes = (f"that is at {place_of(before)}",)
    return _Repair(copy, f"this copy is not waited for{when}", "wait for it", "waits for it", notes)


def _report_mended(error: CompilationError, *, strict: bool) -> None:
    done = "moves transfers, so that it does not happen"
    if strict:
        raise CompilationError(
            error.message, error.location, source_line=source_line(error.location),
            notes=(*error.notes, f"{STRICT}{done}"),
        )  # fmt: skip
    message = f"as it is written, {error.message}: the compiler {done}"
    report_again(Diagnostic("remark", message, error.location, tuple(error.notes)))
