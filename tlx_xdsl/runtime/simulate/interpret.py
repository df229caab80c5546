"""Run a kernel on the CPU, on numpy arrays, at any stage of the pipeline. No GPU, Triton or torch is needed."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32, i64
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from tlx_xdsl import wings
from tlx_xdsl.analysis.module_attrs import cluster_dims, set_cluster
from tlx_xdsl.dialects.func import assume_program_arguments
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError, SourceLocation
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.code import Debugger, Function, Plan
from tlx_xdsl.interpreter.dependent_launches import DependentLaunch, waits_for_grids
from tlx_xdsl.interpreter.faults import OutOfBounds
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.global_order import GlobalOrder, last_writers
from tlx_xdsl.interpreter.grid import First
from tlx_xdsl.interpreter.in_step import run_in_step
from tlx_xdsl.interpreter.launch import Settings, clusters
from tlx_xdsl.interpreter.machine import Launch, Observer
from tlx_xdsl.interpreter.orders.launch import run_in_order
from tlx_xdsl.interpreter.plan import coordinates_of, kernel_of, make_plan
from tlx_xdsl.interpreter.trace import Trace
from tlx_xdsl.interpreter.workers import run_launch, takes_turns, talks
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.numerics.host_arrays import reach
from tlx_xdsl.targets import target_named
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics, report_again, source_location
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import is_plain, run_pipeline
from tlx_xdsl.transforms.placed import with_placed
from tlx_xdsl.transforms.registry import current_name, pass_class, pass_names
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass

from ..driver.compilation import frontend_module, installed_profile, passes_for
from ..driver.host_values import Typed, bound, defaults_of, flattened, is_descriptor, on_host, split_options, typed
from ..driver.reproducible import reproducible
from ..driver.specialization import Specialization
from ..ranks.arguments import bind_ranks, of_ranks, ranks_of, typed_ranks
from ..ranks.simulated import SymmetricArray
from .options import ALIASED, FRONTEND, OPTION_NAMES, PTX, TTGIR, Options, known_options
from .plans import as_warning, planned, refusals
from .wrapping import facts_of, with_wrap

if TYPE_CHECKING:
    from tlx_xdsl.ptx.launch import PtxRun
    from tlx_xdsl.ptx.read.faults import PtxFault

Change: TypeAlias = Callable[[ModuleOp], None]
"""Changes a module in place."""


@dataclass(frozen=True)
class Interpretation:
    """The result of a run that ended without a fault."""

    clusters: int
    """Clusters of the grid: programs, where clusters have one thread block."""
    turns: int
    """Turns of all tasks and asynchronous operations together."""
    seconds: float
    """Time of the run, without the frontend and the passes."""
    warnings: tuple[Diagnostic, ...]
    """Warnings of what the kernel has left unfinished, and of passes; each thing once, as the first program said it."""
    jobs: int
    """Processes that have taken part."""
    communicates: bool = False
    """Whether programs may depend on what others have done: the kernel has atomic operations or `while`."""
    ptx: PtxRun | None = None
    """What the run has done at the stage `ptx`, whose `turns` are the instructions that warps have run."""
    dependent: tuple[Diagnostic, ...] = ()
    """What comes before the wait for earlier launches, and may not, if accesses to global memory are compared."""
    unfilled: tuple[Diagnostic, ...] = ()
    """What is left uninitialized of arrays that were declared so, and that the kernel only writes (`tlx check`)."""
    writers: Mapping[str, SourceLocation] = field(default_factory=dict[str, SourceLocation])
    """Where each array was written last, in a launch whose accesses to global memory are compared."""
    faults: tuple[PtxFault, ...] = ()
    """With `keep_going`, what the PTX does wrong; without `ptx`, the last one of it has ended the run."""

    def _repr_html_(self) -> str:
        from ..show.pages import run_page

        rows = {
            "clusters": self.clusters,
            "turns": f"{self.turns:,}",
            "seconds": f"{self.seconds:.2f}",
            "processes": self.jobs,
            "warnings": len(self.warnings),
        }
        return run_page(rows, self.warnings)


def interpret(
    kernel: Any, grid: Grid, /, *args: Any, options: Mapping[str, Any] | None = None, **named: Any
) -> Interpretation:
    """Run all programs of `grid` on the arguments, which are in the order of the kernel's parameters or named.

    Arrays are numpy arrays or torch tensors on the CPU, and are written in place; tensor descriptors are ours or
    Triton's. The kernel is compiled for the types of the values: an int is an i32 where that holds it, a float an
    fp32; None and the values of constexpr parameters are constants. Names that are no parameter of the kernel are
    fields of `Options`; where a parameter has the name of one, such as `seed`, `options={"seed": 1}` means the option.

    Raises CompilationError for an error in the kernel; its subclass `interpreter.faults.Fault` for what the kernel
    does wrong while it runs, at the line that does it; TypeError and ValueError for arguments that do not fit.
    """
    source = source_of_kernel(kernel)
    given, chosen = split_options(source, named, OPTION_NAMES)
    made = Options(**chosen, **known_options(options))
    if made.passes and made.stage == FRONTEND:
        raise InputError("passes: no pass runs before the stage 'frontend', ask for stage='ttgir' or another one")
    return interpret_source(source, grid, bound(source, args, given), made)


def interpret_source(
    source: KernelSource,
    grid: Grid,
    arguments: Mapping[str, Any],
    options: Options,
    types: Mapping[str, Signature] | None = None,
    change: Change | None = None,
    debugger: Debugger | None = None,
) -> Interpretation:
    """Run a kernel on arguments by name, as `interpret` does; `types` says what is not to be derived from values.

    `change` changes what the frontend has made, and `debugger` sees each operation before it runs.
    """
    with reproducible(source, grid=grid, arguments=arguments, options=options, types=types):
        sizes = grid_of(grid, {**defaults_of(source), **arguments})
        if ranks := ranks_of(arguments, options.ranks):
            return _interpret_ranks(source, sizes, arguments, replace(options, ranks=ranks), types, change, debugger)
        if options.launches > 1:
            raise InputError(f"launches={options.launches} are those of each rank: add ranks=1 or more")
        specialization, values = _specialized(source, arguments, options, types)
        if options.stage == PTX:
            return _run_final(source, specialization, values, sizes, options)
        if options.stage in wings.names("launchers"):
            return _run_native(source, arguments, sizes, options)

        plan = _planner(source, specialization, options, change, debugger)
        return _run(plan, sizes, [value for _, value in values], [name for name, _ in values], options)


def _interpret_ranks(
    source: KernelSource,
    grid: tuple[int, int, int],
    arguments: Mapping[str, Any],
    options: Options,
    types: Mapping[str, Signature] | None,
    change: Change | None,
    debugger: Debugger | None,
) -> Interpretation:
    """Run a kernel on several GPUs at once."""
    if options.stage in wings.names("launchers"):
        raise InputError(
            f"ranks={options.ranks}: the stage '{options.stage}' runs each program to its end, so a wait for another "
            "rank would not end; ranks are simulated at the stages frontend to ttgir, and at ptx"
        )
    if options.stage == PTX and (options.launches > 1 or options.profile or options.keep_going or options.steps):
        raise InputError("the stage 'ptx' runs one launch of each rank, without keep_going, profiles and timelines")
    found = typed_ranks(source, of_ranks(arguments, options.ranks, options.launches), types)
    specialization = _specialization(found[0], options)
    names = [name for name, _ in found[0].values]
    values = [[value for _, value in each.values] for each in found]
    symmetric = {name: value for name, value in arguments.items() if isinstance(value, SymmetricArray)}
    if options.stage == PTX:
        from .ptx_stage import run_ptx_ranks

        with collected_diagnostics() as warnings:
            run = run_ptx_ranks(source, specialization, [each.values for each in found], symmetric, grid, options)
        clusters = prod(grid) * options.ranks // prod(specialization.cluster)
        return Interpretation(clusters, run.instructions, run.seconds, tuple(warnings), 1, ptx=run)
    plan = _planner(source, specialization, options, change, debugger)
    return _run(plan, grid, values, names, options, symmetric)


def _planner(
    source: KernelSource,
    specialization: Specialization,
    options: Options,
    change: Change | None,
    debugger: Debugger | None,
) -> Callable[[], Plan]:
    """Return what makes the plan of a kernel, or finds one that was made before."""

    def plan() -> Plan:
        module = frontend_module(source, specialization, installed_profile())
        if change is not None:
            change(module)
        if options.stage == FRONTEND:
            # What the compiler promises is there.
            run_pipeline(module, promised(), make_context())
        return _lowered(module, source.symbol, options.stage, (*source.passes, *options.passes), debugger)

    if debugger is not None:
        return lambda: debugger.kept(plan)
    return plan if change is not None else lambda: planned(source, specialization, options.stage, plan)


def _run_final(
    source: KernelSource,
    specialization: Specialization,
    values: Sequence[tuple[str, Any]],
    grid: tuple[int, int, int],
    options: Options,
) -> Interpretation:
    """Run the PTX that stock Triton makes of a kernel.

    Raises PtxFault for what it does wrong, unless the run is to go on: `Interpretation.faults` has it then.
    """
    # The PTX machine takes a tenth of a second, and other stages do without.
    from .ptx_stage import PtxRun, run_ptx

    with collected_diagnostics() as warnings:
        done = run_ptx(source, specialization, values, grid, options)
    clusters = prod(grid) // prod(specialization.cluster)
    run = PtxRun(0, 0.0) if done.run is None else done.run
    return Interpretation(
        clusters, run.instructions, run.seconds, tuple(warnings), 1, ptx=done.run, faults=done.faults
    )  # fmt: skip


def _run_native(
    source: KernelSource, arguments: Mapping[str, Any], grid: tuple[int, int, int], options: Options
) -> Interpretation:
    """Run the machine code that a wing makes of a kernel, with its checks of each access."""
    launcher = wings.launcher(options.stage)(source)
    values = {name: value.value if isinstance(value, constexpr) else value for name, value in arguments.items()}
    began = time.perf_counter()
    with collected_diagnostics() as warnings:
        launcher.launch(grid, (), {**values, "checks": True})
    return Interpretation(prod(grid), 0, time.perf_counter() - began, tuple(warnings), 1)


def module_of(
    source: KernelSource, arguments: Mapping[str, Any], options: Options, types: Mapping[str, Signature] | None = None
) -> tuple[ModuleOp, list[tuple[str, Any]]]:
    """Return what the frontend makes of a kernel for arguments by name, and the values of the function's arguments.

    Raises CompilationError for an error in the kernel.
    """
    specialization, values = _specialized(source, arguments, options, types)
    return frontend_module(source, specialization, installed_profile()), values


def _specialized(
    source: KernelSource, arguments: Mapping[str, Any], options: Options, types: Mapping[str, Signature] | None
) -> tuple[Specialization, list[tuple[str, Any]]]:
    """Return what a kernel is compiled for, and the values of the function's arguments."""
    found = typed(source, arguments, types)
    return _specialization(found, options), found.values


def _specialization(found: Typed, options: Options) -> Specialization:
    return Specialization(
        found.signature, found.constexprs, options.target, options.num_warps, options.num_ctas,
        _cluster(options.cluster), debug=True, passes=tuple(options.passes),
    )  # fmt: skip


def interpret_text(
    text: str,
    grid: Grid,
    args: Sequence[Any] | Mapping[str, Any],
    *,
    function: str | None = None,
    filename: str = "<text>",
    **options: Any,
) -> Interpretation:
    """Run a function of a module that is given as text, at whatever stage it is; `options` are those of `Options`.

    `args` are the values in the order of the function's arguments, or by their names in the text. A descriptor stands
    for the arguments with its shape and strides after it, too. `function` is needed where several are public.

    Raises as `interpret` does.
    """
    module = parse_module(text, filename=filename)
    return interpret_module(module, grid, args, Options(**options), function)


def interpret_module(
    module: ModuleOp,
    grid: Grid,
    args: Sequence[Any] | Mapping[str, Any],
    options: Options,
    function: str | None = None,
) -> Interpretation:
    """Run a function of a module, as `interpret_text` does; passes that `options.stage` names change the module."""
    kernel = kernel_of(module, function)
    if isinstance(kernel, func.FuncOp):
        assume_program_arguments(kernel, len(args))
    names = list(argument_types(kernel))
    if isinstance(args, Mapping):
        surplus = next((name for name in args if name not in names), None)
        missing = next((name for name in names if name not in args), None)
        if surplus is not None or missing is not None:
            what = f"has no argument '{surplus}'" if missing is None else f"needs a value for '{missing}'"
            raise InputTypeError(f"'{kernel.sym_name.data}' {what}, its arguments are {', '.join(names) or 'none'}")
        args = [args[name] for name in names]
    if len(args) != len(names):
        raise InputTypeError(f"'{kernel.sym_name.data}' takes {len(names)} arguments, found {len(args)}")
    values = [value for name, item in zip(names, args, strict=True) for _, value in flattened(name, item)]
    given = dict(zip(names, args, strict=True))
    set_cluster(module, _cluster(options.cluster))
    name = kernel.sym_name.data
    return _run(
        lambda: _lowered(module, name, options.stage, options.passes), grid_of(grid, given), values, names, options
    )


def argument_types(kernel: Function) -> dict[str, Attribute]:
    """The arguments of a function that a caller gives values for, by name: a descriptor stands for its extents, too."""
    types = list(kernel.function_type.inputs.data)
    types = types[: len(types) - coordinates_of(kernel)]
    result: dict[str, Attribute] = {}
    at = 0
    while at < len(types):
        type_, hint = types[at], kernel.body.blocks[0].args[at].name_hint
        name = hint if hint is not None and hint not in result else f"arg{at}"
        result[name] = type_
        at += 1
        if isinstance(type_, TensorDescType):
            rank = len(type_.shape)
            extents = [i32] * rank + [i64] * rank
            at += 2 * rank if types[at : at + 2 * rank] == extents else 0
    return result


def promised() -> tuple[ModulePass, ...]:
    """The passes that complete what the frontend makes of a kernel, which count as its own doing at each stage."""
    return (pass_class("tlx-insert-cluster-barriers")(),)


def check_stages(stages: Sequence[str]) -> None:
    """Raise InputError for a stage that there is not: neither one with a name of its own, nor a pass, nor a wing's."""
    known = (FRONTEND, ALIASED, TTGIR, PTX, *wings.names("stages"), *wings.names("launchers"))
    passes = pass_names()
    for each in stages:
        if each not in known and current_name(each) not in passes:
            meant = did_you_mean(each, (*known, *passes)) or ","
            raise InputError(f"unknown stage '{each}'{meant} expected {', '.join(known)} or a pass")


def passes_until(stage: str, module: ModuleOp, asked: Sequence[str] = ()) -> tuple[ModulePass, ...]:
    """The passes of the pipeline for a module that has just left the frontend, up to a stage.

    `asked` are passes of other packages, as `after:NAME=PASS`.

    Raises ValueError when there is no such stage, and CompilationError for a pass that can't be placed.
    """
    if stage == FRONTEND:
        return ()
    of_wings = wings.names("stages")
    if stage in of_wings:
        return with_placed(wings.attribute(of_wings[stage][0])(), asked)
    plain = is_plain(module)
    passes = passes_for(plain=plain, asked=asked)
    if stage == TTGIR:
        return passes
    last = RewriteLocalAliasPass.name if stage == ALIASED else current_name(stage)
    names = [each.name for each in passes]
    if last in names:
        return passes[: names.index(last) + 1]
    if stage == ALIASED:
        return ()
    kind = " of a plain Triton kernel" if plain else ""
    known = ", ".join((FRONTEND, ALIASED, TTGIR, *names, *of_wings))
    raise InputError(f"unknown stage '{stage}'{kind}, expected {known}")


def source_of_kernel(kernel: Any) -> KernelSource:
    """Return what was written of a kernel: ours, stock Triton's or a plain function.

    Raises TypeError for anything else.
    """
    if (source := source_of(kernel)) is not None:
        return source
    if inspect.isfunction(kernel):
        return KernelSource(kernel)
    raise InputTypeError(f"expected a kernel decorated with tlx_xdsl.jit, found {type(kernel).__name__}")


def _run(
    plan: Callable[[], Plan],
    grid: tuple[int, int, int],
    values: Sequence[Any],
    names: Sequence[str],
    options: Options,
    symmetric: Mapping[str, SymmetricArray] | None = None,
) -> Interpretation:
    """Make the plan, and run it; when that ends in an error, warnings are reported with it.

    On several ranks, `values` has those of each, and `symmetric` what they share.
    """
    result: Interpretation | CompilationError
    with collected_diagnostics() as warnings:
        try:
            made = plan()
            _judge(made, grid, options, warnings)
            result = _executed(made, grid, values, names, options, symmetric or {})
        except CompilationError as error:
            result = error
    # Each thing once, as the first program has said it.
    once = {(each.severity, each.message, each.location): each for each in reversed(warnings)}
    warnings = tuple(reversed(once.values()))
    if isinstance(result, Interpretation):
        return replace(result, warnings=warnings)
    for each in warnings:
        report_again(each)
    raise result


def _executed(
    plan: Plan,
    grid: tuple[int, int, int],
    values: Sequence[Any],
    names: Sequence[str],
    options: Options,
    symmetric: Mapping[str, SymmetricArray],
) -> Interpretation:
    """Run a plan. Raises Fault for what the kernel does wrong."""
    named = list(zip(names, values[0] if options.ranks else values, strict=True))
    try:
        launch = _prepared(plan, grid, values, names, options, symmetric)
        firsts = clusters(launch)[::-1] if options.descending else clusters(launch)
        if plan.debugger is not None:
            firsts = plan.debugger.chosen(firsts)
        before = time.perf_counter()
        turns, jobs = _traced(launch, firsts, options)
        seconds = time.perf_counter() - before
    except OutOfBounds as fault:
        raise with_wrap(fault, plan.module, facts_of(grid, dict(named))) from None
    unfilled = _unfilled(launch.memory, named)
    writers = {} if launch.order is None else last_writers(launch.order, launch.memory)
    early = () if launch.order is None or launch.order.dependent is None else launch.order.dependent.conflicts()
    return Interpretation(
        len(firsts), turns, seconds, (), jobs, talks(plan.module), dependent=tuple(early), unfilled=unfilled,
        writers=writers,
    )  # fmt: skip


def _unfilled(memory: GlobalMemory, values: Iterable[tuple[str, Any]]) -> tuple[Diagnostic, ...]:
    """Return what a kernel has left uninitialized of the arrays among `values` that are its results."""
    arrays = [(name, value.base if is_descriptor(value) else value) for name, value in values]
    found = [memory.uninitialized.unfilled(name, array) for name, array in arrays]
    return tuple(Diagnostic("warning", each.message, each.location, each.notes) for each in found if each is not None)


def _judge(plan: Plan, grid: tuple[int, int, int], options: Options, warnings: list[Diagnostic]) -> None:
    """Warn of what the target would refuse to launch, and say what launches nothing.

    Later stages refuse the former themselves. Raises CompilationError for it where that is asked for.
    """
    kernel = plan.function
    is_judged = options.stage == FRONTEND and not _is_for_another(plan.module, options)
    for error in refusals(plan.module, kernel, grid, options) if is_judged else ():
        if options.unlaunchable == "error":
            raise error
        warnings.append(as_warning(error, options.target))
    if not prod(grid):
        message = f"the grid {'x'.join(map(str, grid))} has no programs: nothing was run"
        warnings.append(Diagnostic("remark", message, source_location(kernel.location)))


def _is_for_another(module: ModuleOp, options: Options) -> bool:
    """Return whether text that was made for one target runs under the name of another."""
    made_for = module.attributes.get("ttg.target")
    return isinstance(made_for, StringAttr) and made_for.data != f"cuda:{target_named(options.target).capability}"


def _lowered(
    module: ModuleOp, function: str, stage: str, asked: Sequence[str], debugger: Debugger | None = None
) -> Plan:
    """The plan of a module that is lowered to a stage, with passes that are asked for."""
    run_pipeline(module, passes_until(stage, module, asked), make_context())
    verify_module(module)
    return make_plan(module, function, debugger=debugger)


def _prepared(
    plan: Plan,
    grid: tuple[int, int, int],
    values: Sequence[Any],
    names: Sequence[str],
    options: Options,
    symmetric: Mapping[str, SymmetricArray],
) -> Launch:
    module = plan.module
    memory = GlobalMemory()
    memory.uninitialized.only_warns = options.unwritten != "error"
    wanted = options.global_order or bool(options.ranks)
    if options.global_order is None and not wanted:
        wanted = options.order is not None or (options.jobs in (None, 1) and talks(module))
    sizes = _cluster(options.cluster)
    if prod(sizes) == 1:
        # Text may say it, which a pass has had from the options once.
        sizes = cluster_dims(module) or sizes
    arguments = [] if options.ranks else bind(plan.function, values, names, memory)
    ranks = bind_ranks(plan.function, values, names, symmetric, memory, options.ranks) if options.ranks else []
    reach([on_host("reachable", value) for value in options.reachable], memory)
    return Launch(
        plan, memory, grid, sizes, arguments, ranks,
        target=target_named(options.target),
        order=_order(module, options.ranks) if wanted else None,
        warns_of_unwritten=options.unwritten != "error",
        poisons_masked=options.unwritten == "poison",
        fences_copies=bool(options.copy_fences),
        in_issue_order=options.tensor_core_order == "issue",
    )  # fmt: skip


def _order(module: ModuleOp, ranks: int) -> GlobalOrder:
    return GlobalOrder(takes_turns(module), ranks, dependent=DependentLaunch() if waits_for_grids(module) else None)


def _traced(launch: Launch, firsts: Sequence[First], options: Options) -> tuple[int, int]:
    """Run the clusters; gives their turns, and the number of processes."""
    # What is written is noted in this process's memory.
    has_uninitialized = any(buffer.written is not None for buffer in launch.memory)
    jobs = (
        1
        if options.reachable or launch.order is not None or has_uninitialized or launch.plan.debugger
        else options.jobs
    )
    settings = Settings(
        options.schedule, options.seed, options.max_turns, options.max_operations, options.max_seconds,
        options.overlapping,
    )  # fmt: skip

    if options.steps is not None:
        return run_in_step(launch, firsts, settings, options.steps), 1

    def run(observer: Observer | None) -> tuple[int, int]:
        if options.order is not None:
            if launch.order is not None:
                return run_in_order(launch, firsts, settings, options.order, observer), 1
            options.order.unexplored = "accesses of programs to global memory are not compared"
        return run_launch(launch, firsts, settings, jobs, observer)

    if (debugger := launch.plan.debugger) is not None:
        return run(cast(Observer, debugger))
    if options.trace is None:
        return run(None)
    trace = Trace(launch.plan.function.sym_name.data)
    try:
        return run(trace)
    finally:
        # A trace is of most use when the run ends in a fault.
        trace.write(Path(options.trace))


def _cluster(sizes: Sequence[int]) -> tuple[int, int, int]:
    if len(sizes) != 3 or min(sizes) < 1:
        raise InputError(f"the cluster must be three numbers of thread blocks, found {list(sizes)}")
    x, y, z = (int(size) for size in sizes)
    return x, y, z
