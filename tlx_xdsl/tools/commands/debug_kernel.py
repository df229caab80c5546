"""The work of `tlx debug`: a kernel's run is recorded, and looked at by commands or by an editor."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError, InputOverflowError, InputTypeError
from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.runtime.simulate.options import PTX, Options

from ..debug.commands import answers, converse
from ..debug.session import Session, arrays_of
from ..documents import diagnostic_as_json, document
from ..launch_line.kernel_options import run_options
from ..launch_line.launches import launch_at, numbers_of
from ..launch_line.modules import MLIR_SUFFIXES
from ..launch_line.request import read
from ..output import print_document
from .array_checks import check_array, expected_array


def run(args: argparse.Namespace) -> int:
    """Carry the command out; the status is 1 where the run of the kernel is wrong.

    Raises CompilationError for an error in the kernel, and in what the command line says.
    """
    as_json = args.format == "json"
    if args.dap is not None:
        if as_json:
            raise CompilationError("--format json: not with --dap, whose messages are the protocol's")
        from ..debug.adapter import serve
        from ..tlx import parser

        return serve(args, opened, lambda: parser("debug"))
    try:
        session, wrong = opened(args)
    except (InputTypeError, InputOverflowError) as error:
        raise CompilationError(str(error)) from error
    if as_json:
        facts = {
            "kernel": args.kernel,
            "events": len(session),
            "tasks": [{"program": str(each.program), "task": each.label} for each in session.recorder.tasks],
            "wrong": None if wrong is None else diagnostic_as_json(wrong),
            "answers": [*answers(session, _commands(args) or ())],
        }
        print_document(document("tlx debug", facts, ok=wrong is None))
        return 1 if wrong is not None else 0
    for line in introduction(session, wrong):
        print(line)
    converse(session, _commands(args))
    return 1 if wrong is not None else 0


def opened(args: argparse.Namespace) -> tuple[Session, CompilationError | None]:
    """Record the run that a command line says; returns it, and what is wrong with it.

    Raises CompilationError as `run` does.
    """
    if args.kernel is None or args.grid is None:
        raise CompilationError("tlx debug: needs FILE.py:KERNEL and --grid")
    if Path(args.kernel.partition(":")[0]).suffix in MLIR_SUFFIXES:
        raise CompilationError("tlx debug: takes a kernel as FILE.py:KERNEL")
    if args.stage == PTX:
        raise CompilationError("--stage ptx: the debugger is of the interpreter, at the stages of its own")
    if args.ranks:
        raise CompilationError("--ranks: the debugger is of one GPU")
    request = read(args)
    launch = launch_at(request, request.sizes, ranks=args.ranks)
    arrays = arrays_of(launch.arguments)
    names = {**numbers_of(launch.names), **{name: array.copy() for name, array in arrays.items()}}
    expected = {name: expected_array(name, arrays[name], text, names) for name, text in _checks(request.lists, arrays)}

    def options() -> Options:
        order = None if args.order is None else Orders(args.order)
        given: dict[str, Any] = {**launch.options, **run_options(args), "order": order, "trace": None}
        return Options(**given)

    session = Session.of(launch.source, launch.grid, launch.arguments, options, launch.types)
    wrong = session.fault
    if wrong is None:
        for name, wanted in expected.items():
            try:
                print(check_array(name, arrays[name], wanted, args.tolerance))
            except CompilationError as error:
                wrong = wrong or error
    if wrong is not None:
        session.end()
    return session, wrong


def _checks(lists: Any, arrays: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, text in lists["check"].items():
        if name not in arrays:
            raise CompilationError(f"--check: there is no array '{name}', the arrays are {', '.join(arrays) or 'none'}")
        yield name, text


def introduction(session: Session, wrong: CompilationError | None) -> list[str]:
    """Return what is said of a run before the first command."""
    programs = len({(each.cluster, each.rank) for each in session.recorder.tasks})
    tasks = len(session.recorder.tasks)
    said = f"recorded {len(session):,} events of {_count(tasks, 'task')} in {_count(programs, 'program')}"
    if wrong is None:
        return [f"{said}; nothing is wrong"]
    short = CompilationError(wrong.message, wrong.location, source_line=wrong.source_line)
    more = ["'error' shows the notes of this report"] if wrong.notes else []
    return [f"{said}; the run is wrong:", *str(short).split("\n"), *more]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _commands(args: argparse.Namespace) -> Iterable[str] | None:
    """The commands of the command line, or of a script; None where the user gives them."""
    if args.command_list:
        return [each.strip() for text in args.command_list for each in text.split(";")]
    return None if args.script is None else Path(args.script).read_text(encoding="utf-8").splitlines()
