"""The work of `tlx gate`: the subjects that a command line and files name, and the report on them."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tlx_xdsl.backend.client import default_limit
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.gate import Manner, Results, Subject, gate
from tlx_xdsl.gate.configurations import LAUNCH_OPTIONS, combined, drawn, heuristics_of, tuned
from tlx_xdsl.gate.environments import toolchains
from tlx_xdsl.gate.machine_code import named_assembler
from tlx_xdsl.gate.recorded import launches_of, sampled
from tlx_xdsl.gate.report import FORMATS
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.kernel import Kernel

from ..launch_line.launches import launch_at
from ..launch_line.loading import kernels_of_file, load_kernel, loaded_names
from ..launch_line.request import Request, assignments, request_of
from ..output import write_text
from ..parser import Parser
from .gate import add_launch_line
from .sweep import choice_values

TABLE = "TLX_GATE"
"""The table of a file's launches, by kernel."""


def run_gate(args: argparse.Namespace) -> int:
    """Carry the command out; returns the exit status."""
    folders = {version: Path(folder) for version, folder in _pairs(args.triton_path)}
    versions = [each.strip() for each in args.triton.split(",") if each.strip()]
    assemblers = [named_assembler(each.strip()) for each in args.ptxas.split(",") if each.strip()]
    manner = Manner(toolchains(versions, folders), args.seconds, args.with_mends, assemblers, args.sass)
    subjects = [each for kernels in args.kernels for each in _subjects(args, kernels)]
    if not subjects:
        raise CompilationError(f"there is nothing to launch in {', '.join(args.kernels)}")
    report = gate(
        subjects, manner, jobs=args.jobs or default_limit(), results=Results(args.results and Path(args.results)),
        progress=False if args.quiet else None,
    )  # fmt: skip
    text = FORMATS[args.format](report)
    write_text(f"{text}\n", args.output)
    return 0 if report else 1


def _pairs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        version, separator, folder = text.partition("=")
        if not separator:
            raise CompilationError(f"--triton-path: expected VERSION=FOLDER, found '{text}'")
        yield version, folder


# --- subjects ---------------------------------------------------------------------------------------------------------


def _subjects(args: argparse.Namespace, kernels: str) -> Iterator[Subject]:
    """The subjects that an argument of the command line names."""
    path = Path(kernels)
    if path.is_dir():
        for file in sorted(path.rglob("*.py")):
            if _has_table(file):
                yield from _of_file(args, str(file))
    elif kernels.endswith(".py"):
        yield from _of_file(args, kernels)
    else:
        kernel, defaults = load_kernel(kernels)
        file, _, name = kernels.rpartition(":")
        line = _table(file).get(name)
        said = _launch_line(line, args, file)
        for choice in assignments(args.choices, "--set"):
            if not _is_used(choice, request_of(said, kernel, defaults)):
                raise CompilationError(f"--set: nothing of the launch of '{name}' is called '{choice}'")
        yield from _of_kernel(said, kernels, kernel, defaults, _decorated(file, name))


def _of_file(args: argparse.Namespace, file: str) -> Iterator[Subject]:
    """The subjects of a file: what its table names, or the launches of a script without one."""
    if not _has_table(Path(file)):
        yield from sampled(launches_of(file, (), args.target or "sm_90a"), args.sample, args.seed)
        return
    kernels = kernels_of_file(file)
    for name, line in _table(file).items():
        if name not in kernels:
            raise CompilationError(f"{TABLE} names '{name}', which is no kernel of this file", SourceLocation(file, 0))
        yield from _of_kernel(_launch_line(line, args, file), f"{file}:{name}", *kernels[name], _decorated(file, name))


def _has_table(file: Path) -> bool:
    if not file.is_file():
        raise CompilationError("no such file", SourceLocation(str(file), 0))
    return f"\n{TABLE} =" in file.read_text(encoding="utf-8", errors="replace")


def _table(file: str) -> Mapping[str, str]:
    found: Mapping[object, object] = loaded_names(file).get(TABLE, {})
    if not isinstance(found, dict) or not all(isinstance(each, str) for item in found.items() for each in item):
        raise CompilationError(
            f"{TABLE} must be a dictionary from kernel names to options, as texts", SourceLocation(file, 0)
        )
    return {str(name): str(line) for name, line in found.items()}


def _decorated(file: str, name: str) -> Any:
    """Return what the file has under a kernel's name, with its autotuner."""
    return loaded_names(file).get(name)


def _launch_line(line: str | None, args: argparse.Namespace, file: str) -> argparse.Namespace:
    """The options of a launch: what a file's table says, and the command line after it."""
    if line is None:
        return args
    parser = Parser(prog=f"{TABLE} of {file}", add_help=False)
    add_launch_line(parser)
    said = vars(parser.parse_args(shlex.split(line)))
    for name, value in said.items():
        given = getattr(args, name)
        said[name] = [*value, *given] if isinstance(value, list) else value if given is None else given
    said["seed"] = args.seed
    return argparse.Namespace(**{**vars(args), **said})


def _of_kernel(
    args: argparse.Namespace, spec: str, kernel: Kernel, defaults: KernelDefaults, decorated: Any
) -> Iterator[Subject]:
    if args.grid is None:
        raise CompilationError(
            f"{spec}: a launch has a grid: give --grid and --arg, or let {TABLE} of the file say them"
        )
    targets = [each.strip() for each in (args.target or "").split(",") if each.strip()] or [None]
    request = request_of(argparse.Namespace(**{**vars(args), "target": targets[0]}), kernel, defaults)
    choices = {
        name: _values(name, text)
        for name, text in assignments(args.choices, "--set").items()
        # Of several kernels each has those that it knows.
        if _is_used(name, request)
    }
    configurations = drawn(combined(tuned(decorated), choices), args.sample, args.seed)
    for target in targets:
        request = request_of(argparse.Namespace(**{**vars(args), "target": target}), kernel, defaults)
        for each in configurations:
            yield _subject(request, spec, each, decorated)


def _values(name: str, text: str) -> list[Any]:
    try:
        return choice_values(name, text)
    except CompilationError:
        # Types in the texts of --arg, and what else these say.
        return [each.strip() for each in text.split(",")]


def _subject(request: Request, spec: str, configuration: dict[str, Any], decorated: Any) -> Subject:
    parameters = {each.name: each for each in request.source.parameters}
    options = {**request.options, **{name: configuration[name] for name in LAUNCH_OPTIONS if name in configuration}}
    constants = {name: value for name, value in configuration.items() if name in parameters}
    named = {name: value for name, value in configuration.items() if name not in parameters and name not in options}
    texts = {name: _substituted(text, named) for name, text in request.lists["arg"].items()}
    numbers = {name: value for name, value in configuration.items() if isinstance(value, int) and name not in options}
    lists = {**request.lists, "arg": texts}
    # A configuration may choose another value than the command line's constants.
    lists["constexpr"] = {name: text for name, text in lists["constexpr"].items() if name not in constants}
    chosen = replace(
        request, lists=lists, options=options,
        defaults=replace(request.defaults, constexprs={**request.defaults.constexprs, **constants}),
    )  # fmt: skip
    sizes = {name: value for name, value in {**request.sizes, **numbers}.items() if _is_used(name, chosen)}
    computed = heuristics_of(decorated)

    def arguments() -> Mapping[str, Any]:
        found = dict(launch_at(chosen, sizes).arguments)
        for name, compute in computed.items():
            plain = {key: value.value if isinstance(value, constexpr) else value for key, value in found.items()}
            found[name] = constexpr(compute(plain))
        return found

    if computed:
        # They count as given, whatever they will be.
        given = {name: None for name in computed if name not in chosen.defaults.constexprs}
        chosen = replace(chosen, defaults=replace(chosen.defaults, constexprs={**chosen.defaults.constexprs, **given}))
    launch = launch_at(chosen, sizes)
    identity = repr(
        (request.grid, sorted(texts.items()), sorted(request.lists["constexpr"].items()), request.seed, sizes)
    )
    kept = {name: value for name, value in options.items() if name != "target"}
    kept["cluster"] = tuple(kept["cluster"])
    return Subject(
        spec, request.source, configuration, launch.grid, arguments, identity, options["target"], kept, launch.types
    )


def _substituted(text: str, named: Mapping[str, Any]) -> str:
    """The text of an argument with the types that a configuration chooses: `randn:TYPE[64]`."""
    for name, value in named.items():
        if not isinstance(value, int):
            text = re.sub(rf"\b{name}\b", str(value), text)
    return text


def _is_used(name: str, request: Request) -> bool:
    """Return whether a name is a parameter of the kernel, an option, or named by the texts of the launch."""
    texts = (request.grid or "", *request.lists["arg"].values(), *request.lists["constexpr"].values())
    known = {*request.source.signature.parameters, *LAUNCH_OPTIONS}
    return name in known or any(re.search(rf"\b{name}\b", text) for text in texts)
