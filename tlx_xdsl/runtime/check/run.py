"""Run a kernel at small sizes and in all orders that make a difference, and report what is wrong in any of them."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.masked_results import reached_by_masked
from tlx_xdsl.analysis.protocol.prove import SECONDS as PROOF_SECONDS, Proof, prove
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.text.diagnostics import Diagnostic

from ..driver.host_values import flattened, is_constant, is_descriptor, signature_of, split_options
from ..ranks.arguments import launches_of, of_ranks, parts_of, ranks_of
from ..simulate.interpret import (
    Change,
    Interpretation,
    check_stages,
    defaults_of,
    interpret_source,
    module_of,
    source_of_kernel,
)
from ..simulate.options import ALIASED, FRONTEND, ORDERS, PTX, SECONDS, SMALL, STAGES, TTGIR, Options, known_options
from ..simulate.wrapping import facts_of, ragged_remark, wrap_remark
from .across_ranks.launch import proved_launch
from .across_ranks.prove import RanksProof
from .explore import Limits, explore, strict
from .launches import REFUSALS, Arrays, Recorded
from .report import (
    OF_PASSES,
    Finding,
    Launchable,
    ProofAt,
    Report,
    Scope,
    Sizes,
    Subject,
    combinations,
    small_values,
    values_of,
)
from .resets import with_resets

RANKS = "ranks"
"""The size that is the number of GPUs."""

_OPTIONS = {field.name for field in fields(Options)}.difference(ORDERS)


def check(
    kernel: Any,
    grid: Grid,
    /,
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
    **named: Any,
) -> Report:
    """Run a kernel on arguments as `interpret` does, in all orders that make a difference, and report what is wrong.

    It takes at most `seconds`, and one run at each stage; the report says whether orders are left out. `stages` are by
    default `frontend` and `ttgir`, and last the PTX that stock Triton makes of the kernel, run once at the smallest
    size for two seconds; where there is none, the report says why. Those that are named are run at all sizes.

    Faults, races and deadlocks count, and warnings of what is left unfinished. Programs' accesses to global memory are
    compared, unless `global_order=False` says not to. Arrays are as before afterwards. `named` may have options of
    `interpret`, too, but those that say an order.

    The kernel is launched `launches` times, on arrays as the launch before has left them: what only a later one does
    wrong is a finding, too. By default a kernel with atomic operations or `while` is launched twice, and that is a
    remark, since the host may set back what the kernel does not; it is a finding where the kernel sets that array back
    itself, and not always.

    `sizes` has the values of named numbers: all their combinations are run, or with `sweep=False` that of the first
    ones. `arguments` makes the arguments for each: a tuple, or a dictionary by name. A parameter with the name of a
    size has its value, and so has `grid`'s dictionary. `"small"` are the numbers at which rings of buffers go wrong.

        assert tlx_xdsl.check(kernel, grid, *arguments)
        assert tlx_xdsl.check(kernel, 1, sizes={"T": "small"}, arguments=lambda T: (np.ones(T * 64), T))

    `ranks` are numbers of GPUs that run the grid side by side, each all of it; all these numbers are run. A list among
    the arguments has a value for each rank, `tlx_xdsl.symmetric` memory that all reach; `arguments` makes them for each
    number of `ranks`, as for a size. Then `launches` are those that each rank makes one after the other, and no rank
    waits between them until others have ended theirs; by default as many as `tlx_xdsl.per_launch` has values for, else
    one, and what a second one with the same arguments does wrong is a remark.

        assert tlx_xdsl.check(kernel, 1, ranks=(2, 3, 4), arguments=lambda ranks: (tlx_xdsl.symmetric(...), ...))

    With `prove` the report has a proof for all trip counts, too, or why there is none (`Report.proofs`); with `ranks` a
    proof of the protocol across ranks, for any number of launches or for the `launches` that are given.

    The report is false, too, where sizes that were asked for were not run, or with `all_orders` where orders were left
    out. What the compiler refuses is a finding.

    Raises TypeError and ValueError for arguments that do not fit.
    """
    sizes = {**(sizes or {}), **({RANKS: ranks} if ranks != () else {})}
    subject = subject_of(
        kernel, grid, args, named, sizes, arguments, sweep=sweep, options=options, on_ranks=ranks != ()
    )
    return checked(subject, seconds, stages, launches, prove=prove, all_orders=all_orders)


def checked(
    subject: Subject,
    seconds: float,
    stages: Sequence[str] | None,
    launches: int | None,
    *,
    prove: bool,
    all_orders: bool,
) -> Report:
    """Check a kernel at some sizes, with a proof where that is asked for. Raises as `check` does."""
    check_stages(stages or ())
    # All numbers of ranks are run that are asked for, and of other sizes as many as there is time for.
    every = {*subject.sizes[0]} == {RANKS}
    limits = Limits(
        seconds, STAGES if stages is None else [each for each in stages if each != PTX], launches, every=every
    )
    scopes = subject.scopes()
    recorded = Recorded(TTGIR)
    report = explore([_recording(scopes[0], recorded), *scopes[1:]], subject.settings, limits)
    if report.ranks and PTX in (stages or ()):
        raise InputError(
            f"the stage '{PTX}' is of one GPU, and the kernel runs on {report.ranks} ranks: tlx check runs all orders "
            "there"
        )
    report = replace(report, wants_all_sizes=subject.is_asked, wants_all_orders=all_orders)
    report = replace(report, findings=tuple(_of_passes(report.findings, subject)))
    compiles = not any(each.rule in REFUSALS for each in report.findings)
    if compiles:
        report = with_resets(report, subject.module)
    if limits.seconds > 0 and compiles:
        refused = [each.sizes for each in report.refusals]
        for sizes in [each for each in subject.sizes if each not in refused][:1]:
            report = replace(report, remarks=(*report.remarks, *masked(subject.module(sizes))))
        if not report.findings and not subject.sizes[0] and not report.ranks:
            report = replace(report, remarks=(*report.remarks, *subject.others()))
    if report.ranks:
        report = replace(report, final="on several ranks tlx run --stage ptx runs it")
        return with_rank_proofs(report, scopes, launches) if prove and compiles else report
    if stages is None or PTX in stages:
        # What it takes to load is not for a check without it.
        from .final_code import Wanted, with_final_code

        wanted = Wanted(stages is not None, seconds)
        report = with_final_code(report, scopes, subject.settings, subject.module, wanted, recorded)
    if not prove or not compiles:
        return report
    return with_proofs(report, scopes, subject.settings, limits, subject.module, subject.scope)


def subject_of(
    kernel: Any,
    grid: Grid,
    args: Sequence[Any],
    named: Mapping[str, Any],
    sizes: Mapping[str, int | Iterable[int] | str],
    arguments: Callable[..., Any] | None,
    *,
    sweep: bool,
    options: Mapping[str, Any] | None,
    on_ranks: bool = False,
) -> Subject:
    """Return what is launched, from the arguments of `check`; `on_ranks` says that a size is `RANKS`.

    Raises as `check` does.
    """
    source = source_of_kernel(kernel)
    given, chosen = split_options(source, named, _OPTIONS)
    settings = Options(**chosen, **known_options(options))

    def bound(at: Sizes) -> dict[str, Any]:
        return _bound(source, args, given, arguments, at)

    def launchable(at: Sizes, change: Change | None) -> Launchable:
        values, of_all = bound(at), settings_at(at)
        over = _grid_at(grid, at)

        def run(order: Mapping[str, Any]) -> Interpretation:
            return interpret_source(source, over, values, replace(of_all, **order), change=change)

        def proved(launches: int | None) -> RanksProof:
            return proved_launch(source, over, values, of_all, any_values(source, values, of_all), launches)

        ranks = ranks_of(values, of_all.ranks)
        return Launchable(run, arrays_of(values), ranks, launches_of(values), proved)

    def settings_at(at: Sizes) -> Options:
        return replace(settings, ranks=at[RANKS]) if on_ranks else settings

    numbers = {name: values_of(name, each) for name, each in sizes.items() if each != SMALL}
    if len(numbers) < len(sizes):
        once = {name: max(numbers.get(name, (1,))) for name in sizes}
        small = small_values(any_values(source, bound(once), settings_at(once)))
        numbers = {name: numbers.get(name, small) for name in sizes}
    return Subject(
        combinations(numbers, sweep=sweep),
        settings,
        launchable,
        lambda at: any_values(source, bound(at), settings_at(at)),
        lambda: other_sizes(source, grid, bound({}), settings),
        is_asked=SMALL not in sizes.values(),
    )


def _recording(scope: Scope, recorded: Recorded) -> Scope:
    """The same launch, whose first run is recorded."""

    def make() -> Launchable:
        launch = scope.make()
        return replace(launch, run=recorded.of(launch.run, Arrays(launch.arrays)))

    return replace(scope, make=make)


def _of_passes(findings: Sequence[Finding], subject: Subject) -> Iterator[Finding]:
    """The findings; where all faults are of the TTGIR, and storage aliasing does not show them, our passes' are named.

    A kernel that aliases storage wrongly has its first fault after the passes that lay storage out.
    """
    faults = [each for each in findings if each.rule in ("deadlock", "fault")]
    of_ttgir = all(each.options.get("stage") == TTGIR for each in faults)
    for each in findings:
        if of_ttgir and each in faults and "order" not in each.options and not _faults_aliased(each, subject):
            note = f"{OF_PASSES}: the interpreter has no report of what the frontend makes"
            notes = (*each.diagnostic.notes, note)
            yield replace(each, diagnostic=replace(each.diagnostic, notes=notes))
        else:
            yield each


def _faults_aliased(finding: Finding, subject: Subject) -> bool:
    """Return whether a run that has a fault at the end of the pipeline has one before most passes, too."""
    launch = subject.launchable(finding.sizes, None)
    arrays = Arrays(launch.arrays)
    before = arrays.state()
    try:
        for stage in (FRONTEND, ALIASED):
            launch.run({**finding.options, **strict(subject.settings), "stage": stage})
            arrays.restore(before)
    except CompilationError:
        return True
    finally:
        arrays.restore(before)
    return False


def masked(module: ModuleOp) -> Iterator[Finding]:
    """Yield what masks hide of loads, and reaches a reduction or a dot."""
    for function in module.walk():
        if isinstance(function, tt.FuncOp):
            for each in reached_by_masked(function):
                yield Finding(each.remark, "masked", {})


def other_sizes(source: KernelSource, grid: Grid, arguments: Mapping[str, Any], options: Options) -> Iterator[Finding]:
    """Yield what goes wrong at larger sizes, and at those that no block divides."""
    module, values = module_of(source, arguments, options)
    sizes = grid_of(grid, {**defaults_of(source), **arguments})

    def run(over: tuple[int, int, int], given: Mapping[str, Any]) -> None:
        interpret_source(source, grid if callable(grid) else over, given, options)

    found = [
        ("overflow", wrap_remark(module, facts_of(sizes, dict(values)))),
        ("bounds", ragged_remark(source, sizes, arguments, run)),
    ]
    for rule, diagnostic in found:
        if diagnostic is not None:
            yield Finding(diagnostic, rule, {"stage": FRONTEND})


def any_values(source: KernelSource, arguments: Mapping[str, Any], options: Options) -> ModuleOp:
    """The kernel for arguments of these types, whatever their values: neither 1 nor multiples of 16 are special.

    Raises CompilationError for a kernel that does not compile.
    """
    if ranks := ranks_of(arguments, options.ranks):
        arguments = of_ranks(arguments, ranks, launches_of(arguments) or 1)[0]
    types = {
        parameter.name: signature_of(parameter.name, arguments[parameter.name])
        for parameter in source.parameters
        if parameter.name in arguments and not (parameter.is_constexpr or is_constant(arguments[parameter.name]))
    }
    return module_of(source, arguments, options, types)[0]


def _bound(
    source: KernelSource,
    args: Sequence[Any],
    named: Mapping[str, Any],
    arguments: Callable[..., Any] | None,
    sizes: Sizes,
) -> dict[str, Any]:
    """The arguments by name, at these sizes. Raises TypeError for those that do not fit."""
    made: Any = () if arguments is None else _made(arguments, sizes)
    named = {**named, **(cast(Mapping[str, Any], made) if isinstance(made, Mapping) else {})}
    values = [*args, *(cast(Sequence[Any], made) if isinstance(made, tuple | list) else ())]
    parameters = source.signature.parameters
    try:
        found = source.signature.bind_partial(*values, **named).arguments
        rest = {name: size for name, size in sizes.items() if name in parameters and name not in found}
        return dict(source.signature.bind(*values, **named, **rest).arguments)
    except TypeError as error:
        raise InputTypeError(f"{source.name}: {error}, its parameters are {', '.join(parameters)}") from error


def _made(arguments: Callable[..., Any], sizes: Sizes) -> Any:
    try:
        inspect.signature(arguments).bind(**sizes)
    except TypeError as error:
        raise InputTypeError(
            f"arguments: {error}; it is called with the sizes {', '.join(sizes) or '(none)'}"
        ) from error
    made = arguments(**sizes)
    if not isinstance(made, tuple | list | Mapping):
        raise InputTypeError(f"arguments must give a tuple or a dictionary, found {type(made).__name__}")
    return cast(Any, made)


def _grid_at(grid: Grid, sizes: Sizes) -> Grid:
    """The grid at these sizes: a function of it may ask for them, as for arguments."""
    if not sizes or not callable(grid):
        return grid
    return lambda known: grid({**sizes, **known})


def check_launch(
    source: KernelSource,
    grid: Grid,
    arguments: Mapping[str, Any],
    settings: Options,
    limits: Limits,
    types: Mapping[str, Signature] | None = None,
) -> Report:
    """Check one launch, on arguments by name; `types` are as for `interpret_source`. Raises as `check` does."""

    def run(order: Mapping[str, Any]) -> Interpretation:
        return interpret_source(source, grid, arguments, replace(settings, **order), types)

    reached = {f"reachable[{at}]": each for at, each in enumerate(settings.reachable)}
    arrays = arrays_of({**arguments, **reached})
    return explore([Scope({}, lambda: Launchable(run, arrays))], settings, limits)


def arrays_of(arguments: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays among the arguments, also those of descriptors and in tuples, and those of all ranks.

    Other libraries' tensors are arrays, too.
    """
    parts = [part for name, value in arguments.items() for part in parts_of(name, value)]
    values = [item for name, value in parts if not is_constant(value) for item in flattened(name, value)]
    found = {name: value.base if is_descriptor(value) else value for name, value in values}
    # Element types of Triton are taken for arrays of objects.
    arrays = {name: cast(NDArray[Any], each) for name, each in found.items() if isinstance(each, np.ndarray)}
    return {name: each for name, each in arrays.items() if each.dtype != object}


# --- proofs -----------------------------------------------------------------------------------------------------------
#
# The proof of a check: for all trip counts, where runs are for some; and runs that show what is refuted.


MOST_TURNS = 8
"""Turns of each loop up to which a run is looked for that shows what is refuted."""
REPLAY_SECONDS = 10.0
"""Time for these runs."""


def with_proofs(
    report: Report,
    scopes: Sequence[Scope],
    settings: Options,
    limits: Limits,
    module_at: Callable[[Sizes], ModuleOp],
    scope_at: Callable[[Sizes], Scope],
) -> Report:
    """The report with a proof for each module that the sizes give, all of them together in at most a minute.

    What is refuted is looked for in runs: at the sizes of the report, else with up to 8 turns of each loop. A path that
    no run shows may be one that there is not, and refutes nothing.
    """
    until = time.process_time() + PROOF_SECONDS
    refused = [each.sizes for each in report.refusals]
    proofs: list[ProofAt] = []
    known: set[str] = set()
    for scope in scopes:
        if scope.sizes in refused:
            continue
        module = module_at(scope.sizes)
        if (text := str(module)) in known:
            continue
        known.add(text)
        for proof in prove(module, seconds=max(until - time.process_time(), 0.0)):
            if proof.answer == "refuted":
                if not _shows(report):
                    report = _replayed(report, proof, scope.sizes, settings, limits, scope_at)
                if not _shows(report):
                    proof = _unconfirmed(proof)
            proofs.append(ProofAt(scope.sizes, proof))
    wrong = next((each.diagnostic for each in report.findings if each.rule in _OF_RUNS), None)
    if wrong is not None:
        proofs = [replace(each, proof=_shown_wrong(each.proof, wrong)) for each in proofs]
    return replace(report, proofs=tuple(proofs))


def with_rank_proofs(report: Report, scopes: Sequence[Scope], launches: int | None) -> Report:
    """The report with a proof across ranks for each of the sizes; nothing is proved where a run has found a fault."""
    refused = [each.sizes for each in report.refusals]
    proofs: list[ProofAt] = []
    for scope in scopes:
        if scope.sizes not in refused and (proved := scope.make().proved) is not None:
            proofs.append(ProofAt(scope.sizes, proved(launches)))
    wrong = {str(each.sizes): each.diagnostic for each in reversed(report.findings) if each.rule in _OF_RUNS}
    found = [
        replace(each, proof=_shown_wrong(each.proof, wrong[str(each.sizes)])) if str(each.sizes) in wrong else each
        for each in proofs
    ]
    return replace(report, proofs=tuple(found))


_OF_RUNS = ("deadlock", "fault", "warning")
"""Findings of a launch: with one of them nothing is said to be proved."""


def _shown_wrong(proof: Proof, finding: Diagnostic) -> Proof:
    """The answer beside what a run has found, which may be in what the proof looks at."""
    if not proof:
        return proof
    return replace(proof, answer="unproved", reason=replace(finding, message=f"a run has found: {finding.message}"))


def _shows(report: Report) -> bool:
    return any(each.rule in ("deadlock", "fault") for each in report.findings)


def _replayed(
    report: Report, proof: Proof, sizes: Sizes, settings: Options, limits: Limits, scope_at: Callable[[Sizes], Scope]
) -> Report:
    """The report with what runs show with few turns of each loop."""
    steps = sorted({turns * step for step in (1, *proof.steps) for turns in range(MOST_TURNS + 1)})
    tried = [case.sizes for case in report.cases]
    wanted = [dict(zip(sizes, each, strict=True)) for each in product(steps, repeat=len(sizes))]
    scopes = [scope_at(each) for each in sorted(wanted, key=lambda each: sum(each.values())) if each not in tried]
    until = time.perf_counter() + REPLAY_SECONDS
    for scope in scopes if sizes else ():
        if time.perf_counter() > until:
            break
        try:
            more = explore([scope], settings, replace(limits, seconds=0.0))
        except (CompilationError, InputError, InputTypeError, InputOverflowError):
            # The size is not right for the kernel.
            continue
        report = replace(
            report, findings=(*report.findings, *more.findings), runs=report.runs + more.runs,
            seconds=report.seconds + more.seconds, cases=(*report.cases, *more.cases),
        )  # fmt: skip
        if _shows(more):
            break
    return report


def _unconfirmed(proof: Proof) -> Proof:
    assert proof.reason is not None
    note = "no run shows it; name what loops depend on with --size, and runs with more turns are tried"
    return replace(proof, answer="unproved", reason=replace(proof.reason, notes=(*proof.reason.notes, note)))
