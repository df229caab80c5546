"""The work of `tlx run`: a kernel on the CPU, at any stage, on generated arrays."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl import wings
from tlx_xdsl.analysis.module_attrs import cluster_dims
from tlx_xdsl.errors import CompilationError, InputOverflowError, InputTypeError
from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.numerics.difference import wide
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.driver.host_values import flattened, is_descriptor
from tlx_xdsl.runtime.ranks.arguments import of_each_rank
from tlx_xdsl.runtime.simulate.interpret import Interpretation, argument_types, interpret_module, interpret_source
from tlx_xdsl.runtime.simulate.options import FRONTEND, PTX, Options

from ..documents import diagnostic_as_json, document
from ..launch_line.kernel_options import run_options
from ..launch_line.launches import Hint, argument_value, grid_of, launch_at, numbers_of
from ..launch_line.modules import MLIR_SUFFIXES, hint_of_type, load_ir
from ..launch_line.request import Said, read, said_of
from ..output import print_document, say
from ..watch import watched
from .array_checks import Expected, check_array, expected_array, summary

if TYPE_CHECKING:
    from tlx_xdsl.runtime.simulate.ptx_comparison import Comparison


def run(args: argparse.Namespace) -> int | None:
    """Carry the command out, with `--watch` after each change of the file; returns the exit status.

    Raises CompilationError for a fault in the kernel, in what it does, and in what the command line says about it.
    """
    path, _, function = args.kernel.partition(":")
    if args.ranks < 0:
        raise CompilationError(f"--ranks: expected a number of GPUs of at least 1, found {args.ranks}")
    if args.ranks and args.compare:
        raise CompilationError("--compare: of one GPU, without --ranks")
    if args.timeline is not None:
        if Path(path).suffix in MLIR_SUFFIXES:
            raise CompilationError("--timeline: takes a kernel as FILE.py:KERNEL, IR has no final code")
        from .run_timeline import show

        show(args)
        return None
    given = next((name for name in ("beside", "chip", "clock") if getattr(args, name)), None)
    if given is not None:
        raise CompilationError(f"--{given}: only with --timeline")
    if not args.watch:
        return _run(args, path, function)
    if args.format == "json":
        raise CompilationError("--format json: not with --watch, which goes on")
    watched(path, lambda: _run(args, path, function))
    return None


def _run(args: argparse.Namespace, path: str, function: str) -> int:
    for option in ("profile", "compare", "keep_going", "mends"):
        is_native = option == "profile" and args.stage in wings.names("launchers")
        if getattr(args, option) and args.stage != PTX and not is_native:
            raise CompilationError(f"--{option.replace('_', '-')}: only with --stage ptx")
    if args.svg is not None and not (args.profile and args.stage in wings.names("launchers")):
        raise CompilationError("--svg: only with --profile --stage cpu")
    if args.passes and args.stage == FRONTEND:
        raise CompilationError("--pass: no pass runs before the stage 'frontend', add --stage ttgir or another one")
    try:
        launched = _text(args, path, function or None) if Path(path).suffix in MLIR_SUFFIXES else _kernel(args)
        run = _Run(args, launched.said, launched.names)
        order = None if args.order is None else Orders(args.order)
        given: dict[str, Any] = {**launched.options, **run_options(args), "order": order}
        result, comparison = launched.run(Options(**given))
        if result.faults and result.ptx is None:
            from .ptx_report import report_faults

            report_faults(result)
        if args.format == "json":
            return run.document(result, comparison)
        run.report(result, comparison, in_clusters=launched.in_clusters)
        if args.profile and launched.profile is not None:
            found = launched.profile(args.stage)
            print(found)
            if args.svg is not None:
                found.write_svg(args.svg)
    except (InputTypeError, InputOverflowError) as error:
        # Arguments that do not fit the kernel.
        raise CompilationError(str(error)) from error
    return 0


@dataclass(frozen=True)
class _Launched:
    """A kernel or IR, with its arguments, to be run."""

    said: Said
    names: Mapping[str, Any]
    """Values that expressions of the command line may name."""
    options: Mapping[str, Any]
    in_clusters: bool
    run: Callable[[Options], tuple[Interpretation, Comparison | None]]
    profile: Callable[[str], Any] | None = None
    """Profiles the launch by lines, as machine code of the wing whose stage that is; IR in a file has no such."""


def _kernel(args: argparse.Namespace) -> _Launched:
    request = read(args)
    launch = launch_at(request, request.sizes, ranks=args.ranks)
    what = launch.source, launch.grid, launch.arguments

    def run(options: Options) -> tuple[Interpretation, Comparison | None]:
        if options.stage == PTX and args.compare is not False and not options.ranks:
            from tlx_xdsl.runtime.simulate.ptx_comparison import run_compared

            return run_compared(*what, options, launch.types)
        return interpret_source(*what, options, launch.types), None

    def profile(stage: str) -> Any:
        values = {
            name: value.value if isinstance(value, constexpr) else value for name, value in launch.arguments.items()
        }
        return wings.launcher(stage)(launch.source).profile(launch.grid, (), values)

    is_native = args.stage in wings.names("launchers")
    return _Launched(
        request, launch.names, launch.options, prod(launch.options["cluster"]) > 1, run, profile if is_native else None
    )  # fmt: skip


def _text(args: argparse.Namespace, path: str, function: str | None) -> _Launched:
    if args.constexpr:
        raise CompilationError("--constexpr: IR has no compile-time arguments any more")
    if args.ranks:
        raise CompilationError("--ranks: takes a kernel as FILE.py:KERNEL")
    module = load_ir(path)
    hints = {name: hint_of_type(type_) for name, type_ in argument_types(kernel_of(module, function)).items()}
    said = said_of(args, KernelDefaults())
    values = {
        name: argument_value(name, text, hints.get(name, Hint()), said.seed, said.sizes)
        for name, text in said.lists["arg"].items()
    }
    grid = grid_of(said, {**said.sizes, **values})

    def run(options: Options) -> tuple[Interpretation, Comparison | None]:
        return interpret_module(module, grid, values, options, function), None

    cluster = said.options["cluster"]
    return _Launched(said, values, {"cluster": cluster}, prod(cluster) > 1 or cluster_dims(module) is not None, run)


class _Run:
    """The arrays of a run, and the report on them."""

    def __init__(self, args: argparse.Namespace, said: Said, values: Mapping[str, Any]):
        self._args = args
        self._arrays: dict[str, list[NDArray[Any]]] = {}
        """By name: one array, or on several ranks that of each."""
        for name, value in values.items():
            for each in of_each_rank(value):
                for part, item in flattened(name, each) if _has_array(each) else ():
                    if _has_array(item):
                        self._arrays.setdefault(part, []).append(item.base if is_descriptor(item) else item)
        self._before = {name: [array.copy() for array in arrays] for name, arrays in self._arrays.items()}
        self._names: dict[str, Any] = numbers_of(values) | {
            name: np.stack([*map(wide, arrays)]) if args.ranks else wide(arrays[0])
            for name, arrays in self._before.items()
        }
        self._saved = self._known(said, "save")
        for path in self._saved.values():
            if not (folder := Path(path).parent).is_dir():
                raise CompilationError(f"--save: there is no folder '{folder}'")
        # Over the arrays from before the run: what is wrong with an expression is said before it, too.
        self._expected = {
            name: [
                expected_array(name, array, expression, {**self._names, **({"rank": rank} if args.ranks else {})})
                for rank, array in enumerate(self._arrays[name])
            ]
            for name, expression in self._known(said, "check").items()
        }

    def _named(self, name: str, rank: int) -> str:
        return f"{name} of rank {rank}" if self._args.ranks else name

    def _known(self, said: Said, option: str) -> Mapping[str, str]:
        result = said.lists[option]
        for name in result:
            if name not in self._arrays:
                arrays = ", ".join(self._arrays) or "none"
                raise CompilationError(f"--{option}: there is no array '{name}', the arrays are {arrays}")
        return result

    def _changed(self) -> list[tuple[str, int]]:
        return [
            (name, rank)
            for name, arrays in self._arrays.items()
            for rank, array in enumerate(arrays)
            if array.tobytes() != self._before[name][rank].tobytes()
        ]

    def _wanted(self) -> Iterator[tuple[str, int, Expected]]:
        for name, of_ranks in self._expected.items():
            for rank, expected in enumerate(of_ranks):
                yield name, rank, expected

    def _save(self) -> None:
        for name, path in self._saved.items():
            arrays = self._arrays[name]
            np.save(path, np.stack(arrays) if self._args.ranks else arrays[0])

    def document(self, result: Interpretation, comparison: Comparison | None) -> int:
        """Print the report for programs; returns the exit status, 1 where an array or the PTX is wrong."""
        self._save()
        checks: list[dict[str, Any]] = []
        for name, rank, expected in self._wanted():
            try:
                said = check_array(self._named(name, rank), self._arrays[name][rank], expected, self._args.tolerance)
                checks.append({"array": name, "rank": rank, "ok": True, "text": said})
            except CompilationError as error:
                checks.append({"array": name, "rank": rank, "ok": False, "text": error.message})
        facts: dict[str, Any] = {
            "kernel": self._args.kernel, "stage": self._args.stage, "programs": result.clusters, "turns": result.turns,
            "seconds": round(result.seconds, 3), "schedule": self._args.schedule, "seed": self._args.seed,
            "arrays": [
                {"name": name, "rank": rank, "text": summary(self._arrays[name][rank])}
                for name, rank in self._changed()
            ],
            "checks": checks, "warnings": [diagnostic_as_json(each) for each in result.warnings],
        }  # fmt: skip
        ok = all(each["ok"] for each in checks) and (comparison is None or comparison.wrong is None)
        if result.ptx is not None:
            from .ptx_report import ptx_as_json, severity_of

            facts |= ptx_as_json(result.ptx, comparison)
            faults = [{**diagnostic_as_json(each), "severity": severity_of(each)} for each in result.faults]
            facts["faults"] = faults
            ok = ok and not any(each["severity"] == "error" for each in faults)
        print_document(document("tlx run", facts, ok=ok))
        return 0 if ok else 1

    def report(self, result: Interpretation, comparison: Comparison | None, *, in_clusters: bool) -> None:
        """Print what a run has changed and how it went, save arrays, and check them.

        Raises CompilationError for an array that does not hold what it should, and for what the PTX has done wrong.
        """
        for diagnostic in result.warnings:
            say(diagnostic)
        changed = self._changed()
        for name, rank in changed:
            print(f"{self._named(name, rank)}: {summary(self._arrays[name][rank])}")
        if not changed:
            print("no array has changed")
        what = "cluster" if in_clusters else "program"
        again = f", launched {self._args.launches} times," if self._args.launches > 1 else ""
        jobs = f", {result.jobs} processes" if result.jobs > 1 else ""
        print(
            f"{result.clusters} {what}{'' if result.clusters == 1 else 's'}{again} in {result.seconds:.2f} s: "
            + (
                f"{result.turns:,} turns, {self._args.schedule}, seed {self._args.seed}{jobs}"
                if result.ptx is None
                else f"{result.turns:,} instructions of warps"
            )
        )
        if result.ptx is not None:
            from .ptx_report import report_ptx

            report_ptx(result.ptx, comparison, profile=self._args.profile)
        self._save()
        for name, rank, expected in self._wanted():
            array = self._arrays[name][rank]
            print(check_array(self._named(name, rank), array, expected, self._args.tolerance))
        if result.ptx is not None:
            from .ptx_report import check_same, report_faults

            report_faults(result)
            check_same(comparison)


def _has_array(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_array(item) for item in cast(tuple[Any, ...], value))
    return isinstance(value, np.ndarray) or is_descriptor(value)
