"""Options of a run in the interpreter, and defaults of `tlx check`, which makes many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlx_xdsl import wings
from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.interpreter.limits import MAX_OPERATIONS, MAX_SECONDS, MAX_TURNS, POLICIES

if TYPE_CHECKING:
    from tlx_xdsl.interpreter.in_step import StepObserver
    from tlx_xdsl.interpreter.orders.reduction import Orders

FRONTEND, ALIASED, TTGIR, PTX = "frontend", "aliased", "ttgir", "ptx"
"""The stages with a name of their own: no pass has run; storage aliasing is done; the whole pipeline has run; stock
Triton has made PTX."""

UNWRITTEN = ("error", "warn", "poison")
"""Values of the option `unwritten`: what a read of uninitialized memory is. The last one is `warn` with poison besides
where a mask hides elements of a load."""

UNLAUNCHABLE = ("warn", "error")
"""Values of the option `unlaunchable`: what a kernel is that no GPU could launch."""

TENSOR_CORE_ORDERS = ("ptx", "issue")
"""Orders of the operations that one task issues to a tensor core of Blackwell."""

SECONDS = 10.0
"""Time of `tlx check` for all sizes and orders, by default."""

STAGES = (FRONTEND, TTGIR)
"""What `tlx check` runs in all orders: what the frontend makes, where lines are closest to the source, and what stock
Triton gets. The final PTX comes after these, once."""

PTX_SECONDS = 2.0
"""Time of the PTX in `tlx check`, which `seconds` beyond 10 gives more of: a fifth."""

MINIMIZE_SECONDS = 2.0
"""Time of `tlx minimize-sync` for the orders without each operation. All sizes are run once at each stage, whatever
that takes."""

SMALL = "small"
"""In the place of a size's values: those at which rings of buffers go wrong (`runtime.check.report.small_values`)."""


@dataclass(frozen=True)
class Options:
    """Options of a run. A new one has a line in `run_options` and `check_options`, too.

    One with `metadata`, which is what argparse must know, is an argument of `tlx run`.
    """

    num_warps: int = 4
    """Warps of the kernel outside of warp-specialised tasks."""

    num_ctas: int = 1
    """CTAs that share one tile."""

    cluster: Sequence[int] = (1, 1, 1)
    """Thread blocks of a cluster along x, y and z; where a module says it, that counts unless this does."""

    target: str = "sm_90a"

    stage: str = field(default=FRONTEND, metadata={"help": "frontend (default), aliased, ttgir, a pass, or ptx"})
    """`frontend`, `aliased`, `ttgir`, the name of the last pass of the pipeline that is to run, a wing's stage, such as
    `linalg`, `ptx`: the final PTX of stock Triton, or what a wing launches on, such as `cpu`: machine code, whose
    accesses are checked. Of what is asked for, machine code knows the arguments and the grid alone."""

    schedule: str = field(default=POLICIES[0], metadata={"help": "who goes on when several can", "choices": POLICIES})
    """`round-robin`, `random` or `adversarial`."""

    seed: int = field(default=0, metadata={"help": "of the schedule and of random numbers (0)"})
    """Of the schedule."""

    unwritten: str = field(
        default=UNWRITTEN[0], metadata={"help": "reads of uninitialized memory (error)", "choices": UNWRITTEN}
    )
    """The result of a read of uninitialized memory: an `error`, or `warn`: a warning, and NaN. In global memory that is
    what an array of `tlx_xdsl.uninitialized` has until something writes it. `poison` warns, too, and makes NaN, or -1,
    of what a mask hides of a load without `other`, which is 0 else."""

    tensor_core_order: str = field(
        default=TENSOR_CORE_ORDERS[0],
        metadata={
            "help": "what orders the tcgen05 operations of a task: PTX's promises (ptx, the default), or their issue",
            "choices": TENSOR_CORE_ORDERS,
        },
    )
    """The order of the MMAs (tcgen05.mma) and the copies to tensor memory (tcgen05.cp) that one task issues.

    `ptx`: what PTX promises. Products with the same accumulator follow each other, and a product follows the copies
    before it. `issue`: each follows all those before it, as on today's tensor cores. All else, such as
    tcgen05.ld, tcgen05.st, and what another task issues, is ordered by barriers only.
    """

    jobs: int | None = field(default=None, metadata={"help": "processes (all cores, where that is worth it)"})
    """Processes; by default all cores for a grid that is worth it."""

    max_turns: int = field(default=MAX_TURNS, metadata={"help": f"turns that a cluster may take ({MAX_TURNS})"})
    """Turns of a cluster after which it counts as one that never ends."""

    max_operations: int = field(default=MAX_OPERATIONS, metadata={"help": f"the same, in loops ({MAX_OPERATIONS})"})
    """Operations in loops after which a cluster counts as one that never ends."""

    max_seconds: float = field(
        default=MAX_SECONDS, metadata={"help": f"the same, in seconds of a processor ({MAX_SECONDS:g})"}
    )
    """Seconds of a processor after which a cluster that is in a loop counts as one that never ends."""

    trace: str | Path | None = field(
        default=None, metadata={"help": "write a trace for chrome://tracing or ui.perfetto.dev", "metavar": "FILE.json"}
    )
    """File for a trace of the run, in Chrome's format; the run then takes place in this process alone."""

    reachable: Sequence[Any] = ()
    """Arrays that the kernel reaches by pointers that it loads: their addresses are those that they have in this
    process (`data_ptr()` of a tensor). The run then takes place in this process alone."""

    descending: bool = field(
        default=False, metadata={"help": "start programs with the last one: no order of programs is promised"}
    )
    """Whether programs with higher numbers start earlier. No order is promised, but those that do not fit on the GPU
    side by side mostly start in rising order."""

    global_order: bool | None = field(
        default=None,
        metadata={
            "help": "check programs' accesses to global memory against each other "
            "(where there are atomics or while loops)"
        },
    )
    """Whether accesses of programs to global memory are checked against each other: what no atomic operation orders is
    a race. The run then takes place in this process alone. By default they are where programs may wait for each other,
    in a kernel with atomic operations or `while`, unless `jobs` asks for several processes."""

    copy_fences: bool | None = None
    """Whether what `cp.async` writes needs a proxy fence before TMA or a tensor core reads it, as PTX has it. `check`
    asks for it; runs do not, since Triton 3.6 to 3.8 put none into their own kernels."""

    overlapping: bool = field(
        default=False, metadata={"help": "run programs side by side, by turns at atomic operations"}
    )
    """Whether programs run side by side, as many as are resident, and take turns at their atomic operations. Else one
    runs until it waits for another."""

    unlaunchable: str = field(
        default=UNLAUNCHABLE[0],
        metadata={"help": "what the target would refuse to launch (warn)", "choices": UNLAUNCHABLE},
    )
    """The result of a launch that the target would refuse, for its shared memory, registers, warps or sizes: `warn`, a
    warning with the compiler's reason, or an `error` before the run."""

    enable_fp_fusion: bool | None = None
    """At the stage `ptx`: whether `a * b + c` may be one fused multiply-add; None is Triton's default. At all others
    a product is rounded before it is added to."""

    num_stages: int = 3
    """At the stage `ptx`: the depth of the pipeline that stock Triton makes of the loops of a plain kernel."""

    mends: bool | None = field(
        default=None,
        metadata={"help": "with --stage ptx: put right what this Triton miscompiles (all but plain Triton kernels)"},
    )
    """At the stage `ptx`: whether the compile puts right what the Triton version is known to miscompile, as launches of
    ours do. By default a kernel that stock Triton alone can compile is compiled as that does, which is how others
    launch it, and all others are put right."""

    keep_going: bool = field(
        default=False, metadata={"help": "with --stage ptx: go on past accesses that nothing orders, and list them all"}
    )
    """At the stage `ptx`: go on past accesses that nothing orders and registers that are used too early. They are all
    in `Interpretation.faults`, each line once, with what has ended the run where something has."""

    profile: bool = field(
        default=False, metadata={"help": "with --stage ptx or cpu: what lines take: instructions, memory, waits, time"}
    )
    """At the stage `ptx`: count what lines take of memory, TMA and the tensor cores (`Interpretation.ptx.traffic`)."""

    order: Orders | None = field(
        default=None,
        metadata={
            "help": "who goes on where that makes a difference, as tlx check reports it",
            "metavar": "STEP:WHO,...",
        },
    )
    """The orders of steps that make a difference, of which the next one is run (`orders.reduction`). Programs run side
    by side then, in this process alone, and what makes no difference is done as the schedule has it."""

    steps: StepObserver | None = None
    """An observer of a run in step: all programs that are resident go on side by side (`interpreter.in_step`)."""

    passes: Sequence[str] = ()
    """Passes of other packages, as `after:NAME=PASS`; at the stage `frontend` none runs."""

    ranks: int = field(default=0, metadata={"help": "GPUs that run the grid side by side, each all of it"})
    """GPUs that run the grid side by side, each all of it; as many as symmetric tensors have, where there are some. A
    list has a value for each, a symmetric tensor memory that all reach. The run then takes place in this process
    alone, and their accesses to global memory are checked against each other."""

    launches: int = field(default=1, metadata={"help": "launches of each rank, one after the other (1)"})
    """Launches of each rank, one after the other in its stream: none waits until other ranks have ended theirs.
    `tlx_xdsl.per_launch` has a value for each."""

    def __post_init__(self) -> None:
        if self.schedule not in POLICIES:
            raise InputError(f"unknown schedule '{self.schedule}', expected one of {', '.join(POLICIES)}")
        for each in fields(self):
            choices, found = each.metadata.get("choices"), getattr(self, each.name)
            if choices is not None and found not in choices:
                raise InputError(f"{each.name} must be {' or '.join(choices)}, found '{found}'")
        if self.unwritten == "poison" and (self.stage == PTX or self.stage in wings.names("stages")):
            raise InputError(f"unwritten='poison' is not for the stage '{self.stage}', where masked elements are 0")
        if self.ranks < 0:
            raise InputError(f"ranks must be at least 1, found {self.ranks}")
        if self.launches < 1:
            raise InputError(f"launches must be at least 1, found {self.launches}")
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"jobs must be at least 1, found {self.jobs}")


OPTION_NAMES = {each.name for each in fields(Options)}


def known_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The options that a call names apart. Raises TypeError for one that there is not."""
    names = [each.name for each in fields(Options)]
    for name in options or {}:
        if name not in names:
            raise InputTypeError(
                f"options: there is no option '{name}'{did_you_mean(name, names)}, the options are {', '.join(names)}"
            )
    return options or {}


ORDERS = ("stage", "schedule", "seed", "order", "steps", "trace", "keep_going")
"""Options of one run that `check` has not: it goes through stages and orders itself."""


def run_options(
    *args: Any,
    options: Mapping[str, Any] | None = None,
    num_warps: int = 4,
    num_ctas: int = 1,
    cluster: Sequence[int] = (1, 1, 1),
    target: str = "sm_90a",
    stage: str = FRONTEND,
    schedule: str = POLICIES[0],
    seed: int = 0,
    unwritten: str = UNWRITTEN[0],
    tensor_core_order: str = TENSOR_CORE_ORDERS[0],
    jobs: int | None = None,
    max_turns: int = MAX_TURNS,
    max_operations: int = MAX_OPERATIONS,
    max_seconds: float = MAX_SECONDS,
    trace: str | Path | None = None,
    reachable: Sequence[Any] = (),
    descending: bool = False,
    global_order: bool | None = None,
    copy_fences: bool | None = None,
    overlapping: bool = False,
    unlaunchable: str = UNLAUNCHABLE[0],
    enable_fp_fusion: bool | None = None,
    num_stages: int = 3,
    mends: bool | None = None,
    keep_going: bool = False,
    profile: bool = False,
    order: Orders | None = None,
    steps: StepObserver | None = None,
    passes: Sequence[str] = (),
    ranks: int = 0,
    launches: int = 1,
    **named: Any,
) -> None:
    """The arguments of `Kernel.interpret` after the grid: those of the kernel, and `Options`."""


def check_options(
    *args: Any,
    seconds: float = SECONDS,
    stages: Sequence[str] | None = None,
    launches: int | None = None,
    ranks: int | Iterable[int] = (),
    sizes: Mapping[str, int | Iterable[int] | str] | None = None,
    arguments: Callable[..., Any] | None = None,
    sweep: bool = True,
    prove: bool = False,
    all_orders: bool = False,
    options: Mapping[str, Any] | None = None,
    num_warps: int = 4,
    num_ctas: int = 1,
    cluster: Sequence[int] = (1, 1, 1),
    target: str = "sm_90a",
    unwritten: str = UNWRITTEN[0],
    tensor_core_order: str = TENSOR_CORE_ORDERS[0],
    jobs: int | None = None,
    max_turns: int = MAX_TURNS,
    max_operations: int = MAX_OPERATIONS,
    max_seconds: float = MAX_SECONDS,
    reachable: Sequence[Any] = (),
    descending: bool = False,
    global_order: bool | None = None,
    copy_fences: bool | None = None,
    overlapping: bool = False,
    unlaunchable: str = UNLAUNCHABLE[0],
    enable_fp_fusion: bool | None = None,
    num_stages: int = 3,
    mends: bool | None = None,
    profile: bool = False,
    passes: Sequence[str] = (),
    **named: Any,
) -> None:
    """The arguments of `Kernel.check` after the grid: those of the kernel, of `check`, and `Options` but `ORDERS`."""
