"""The work of `tlx warp-specialize` and `tlx explain --warp-specialize`: a plain kernel as tasks, and why like that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TextIO

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.specialize.search import Wanted, searched
from tlx_xdsl.runtime.specialize.settings import Settings
from tlx_xdsl.runtime.specialize.specialized import Specialized
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

from ..documents import diagnostic_as_json, document, plain
from ..launch_line.request import Request, assignments, constexpr_value, read
from ..launch_line.specialization import specialization_of
from ..output import print_document, warn, write_text


def run(args: argparse.Namespace) -> int:
    """Carry the command out: write the source, and say what was decided; returns 1 where nothing proves it right.

    Raises CompilationError for a fault in the kernel, and for a kernel that can't be specialised. A source that may not
    be launched, because nothing proves it right, is written all the same, and then the reason is raised.
    """
    found = specialised(args)
    if not found.source:
        raise _refusal(found)
    is_right = found.refused is None or bool(found.verdict)
    if args.format == "json":
        if args.output is not None:
            write_text(found.source, args.output)
        print_document(document("tlx warp-specialize", _facts(found, args.kernel), ok=is_right))
        return 0 if is_right else 1
    write_text(found.source, args.output)
    # Standard output has the source where no file is named.
    report(found, sys.stderr if args.output is None else sys.stdout)
    if found.refused is not None:
        if not is_right:
            raise _refusal(found)
        warn(found.refused.message)
    return 0


def explain(args: argparse.Namespace) -> None:
    """Say what would be decided, and what else there is.

    Raises CompilationError for a fault in the kernel, and for a kernel that can't be specialised.
    """
    found = specialised(args)
    if not found.source:
        raise _refusal(found)
    if args.format == "json":
        print_document(document("tlx explain", _facts(found, args.kernel)))
        return
    report(found, sys.stdout)
    if found.refused is not None:
        print(found.refused.message)


def report(found: Specialized, file: TextIO) -> None:
    """Print a line for each decision, and what is proved of the result."""
    for each in found.decisions:
        print(each, file=file)
    if found.milliseconds is not None:
        print(f"predicted: {found.milliseconds:.4g} ms", file=file)
    if found.verdict is not None:
        print(f"synchronisation: {found.verdict}", file=file)


def _facts(found: Specialized, kernel: str) -> dict[str, Any]:
    """The same for programs, with the source."""
    verdict = found.verdict
    return {
        "kernel": kernel,
        "decisions": [
            {
                "name": each.name, "value": plain(each.value), "reason": each.reason, "place": each.line or None,
                "alternatives": [
                    {"value": plain(other.value), "milliseconds": other.milliseconds, "why_not": other.why_not or None}
                    for other in each.alternatives
                ],
            }
            for each in found.decisions
        ],
        "milliseconds": found.milliseconds,
        "synchronisation": None if verdict is None else {
            "answer": verdict.answer, "details": list(verdict.details), "assumed": list(verdict.assumed),
        },
        "refused": None if found.refused is None else diagnostic_as_json(found.refused),
        "source": found.source,
    }  # fmt: skip


def specialised(args: argparse.Namespace) -> Specialized:
    """Specialise the kernel of a command line; with a launch by what the clock expects, otherwise by rules.

    Raises CompilationError for a fault in the kernel, and for what the command line says and there is not.
    """
    request = read(args)
    by = args.by or ("rules" if request.grid is None else "search")
    return searched(_wanted(args, request), Settings(by, seconds=args.seconds, decisions=_decisions(args.set)))


def _decisions(texts: Sequence[str]) -> dict[str, int | bool]:
    """The decisions that `--set` makes. Raises CompilationError for one that there is not, and for another value."""
    kinds = {each.name: bool if "bool" in str(each.type) else int for each in fields(Decisions)}
    found: dict[str, int | bool] = {}
    for name, text in assignments(texts, "--set").items():
        if name not in kinds:
            raise CompilationError(f"--set: expected a decision ({', '.join(kinds)}), found '{name}'")
        value = constexpr_value(name, text, "--set")
        if type(value) is not kinds[name] or (kinds[name] is int and value < 1):
            what = "True or False" if kinds[name] is bool else "a number above 0"
            raise CompilationError(f"--set: '{name}' is {what}, found '{text}'")
        found[name] = value
    return found


def _wanted(args: argparse.Namespace, request: Request) -> Wanted:
    """The types and the launch that a command line says."""
    types = specialization_of(request)
    options = {name: request.options[name] for name in ("num_warps", "num_stages")}
    wanted = Wanted(
        request.kernel, types.signature, types.constexprs, types.target, types.num_warps, options, chip=args.chip
    )
    if request.grid is None:
        return wanted
    # Loads numpy.
    from ..launch_line.launches import launch_at

    launch = launch_at(request, request.sizes, "integers")
    named: Mapping[str, Any] = launch.arguments
    return replace(wanted, grid=launch.grid, named=named)


def _refusal(found: Specialized) -> CompilationError:
    assert found.refused is not None
    return found.refused
