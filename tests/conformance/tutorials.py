"""Run the public TLX tutorials (`third_party/tlx/tutorials` of Meta's Triton), unmodified, on small shapes.

    python -m tests.conformance.tutorials SUITE_ROOT --target sm_100a --json out.json

Without a GPU `torch.cuda` is faked and launches go to the interpreter; with `--compile` they compile for the target
through stock Triton and ptxas, and run nothing; with `--gpu` they go to the device. Each case (`tutorial_cases.py`,
`tutorial_models.py`) runs in a process of its own, which ends after `--timeout` seconds.

The tutorials are not part of this project: SUITE_ROOT is a checkout of them. torch must be importable, and torchao for
the ones in MXFP8.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.tutorial_cases import Case

DIRECTORY = Path("third_party/tlx/tutorials")
PACKAGE = "triton.language.extra.tlx.tutorials"
RIGHT, WRONG, REFUSED, FAILED, SLOW = "right", "wrong numbers", "refused", "failed", "no end"
THEIRS = "their defect"


@dataclass(frozen=True)
class Collection:
    """Kernels of others, and how to run them."""

    module: str
    """What `python -m` runs in a process for each case."""
    help: str | None
    cases: Callable[[], Mapping[str, Case]]
    load: Callable[[Path, str], ModuleType]
    """Imports a file below the root."""


def main(argv: Sequence[str] | None = None, collection: Collection | None = None) -> int:
    """Run the cases of a target; the exit status is 1 if one is not right."""
    collection = collection or TUTORIALS
    parser = argparse.ArgumentParser(
        description=collection.help, formatter_class=argparse.RawDescriptionHelpFormatter
    )  # fmt: skip
    parser.add_argument("root", type=Path, help="a checkout of the suite")
    parser.add_argument("--target", default="sm_100a", choices=("sm_90a", "sm_100a"))
    parser.add_argument("--only", help="the cases whose names contain this")
    parser.add_argument("--json", type=Path, help="write {name: outcome, reason, errors, seconds} to this file")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each case")
    parser.add_argument("--cubin", action="store_true", help="compile what was interpreted, too, to a cubin")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--ptx", dest="mode", action="store_const", const="ptx", help="run the final PTX on the CPU")
    mode.add_argument("--gpu", dest="mode", action="store_const", const="launch", help="launch on the device")
    mode.add_argument("--compile", dest="mode", action="store_const", const="compile", help="compile, run nothing")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.set_defaults(mode="interpret")
    options = parser.parse_args(argv)
    if options.case is not None:
        print(json.dumps(_run(collection, options)))
        return 0
    results: dict[str, dict[str, Any]] = {}
    for name, case in collection.cases().items():
        if options.target not in case.targets or (options.only or "") not in name:
            continue
        result = _isolated(collection, options, name)
        if result["outcome"] != RIGHT and case.defect and case.defect.shown_by(result["reason"]):
            result |= {"outcome": THEIRS, "defect": case.defect.what}
        results[name] = result | {"target": options.target, "source": case.source}
        print(f"{name:<50} {result['outcome']:<14} {result['seconds']:7.1f} s  {result['reason']}", flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(dict(Counter(result["outcome"] for result in results.values())))
    return int(any(result["outcome"] not in (RIGHT, THEIRS) for result in results.values()))


def _tutorial_cases() -> Mapping[str, Case]:
    from tests.conformance import tutorial_models  # noqa: F401  (enters its cases)
    from tests.conformance.tutorial_cases import CASES

    return CASES


def _isolated(collection: Collection, options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Run a case in a process."""
    command = [sys.executable, "-m", collection.module, str(options.root), "--case", name]
    command += ["--target", options.target, *_FLAGS[options.mode], *(["--cubin"] if options.cubin else [])]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"outcome": SLOW, "reason": f"after {options.timeout:g} s", "seconds": options.timeout}
    seconds = round(time.monotonic() - began, 1)
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or not last.startswith("{"):
        why = done.stderr.strip().rpartition("\n")[2]
        return {"outcome": FAILED, "reason": f"status {done.returncode}: {why}", "seconds": seconds}
    return {**json.loads(last), "seconds": seconds}


_FLAGS = {"interpret": (), "ptx": ("--ptx",), "compile": ("--compile",), "launch": ("--gpu",)}


def _run(collection: Collection, options: argparse.Namespace) -> dict[str, Any]:
    """Run a case here."""
    import tlx_xdsl.compat
    from tlx_xdsl import CompilationError

    if options.mode != "launch":
        # For the rest of the process.
        tlx_xdsl.compat.torch_without_gpu(options.target).__enter__()
    tlx_xdsl.compat.install(mode=options.mode, target=options.target)
    launched = _keep_launches() if options.cubin else {}
    from tests.conformance.tutorial_cases import ERRORS, WrongNumbers
    from tlx_xdsl.compat.without_gpu import InterpreterWarning

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            collection.cases()[options.case].run(lambda file: collection.load(options.root.resolve(), file))
            outcome, reason = RIGHT, ""
        except WrongNumbers as error:
            heard = [str(each.message) for each in said if isinstance(each.message, InterpreterWarning)]
            outcome = RIGHT if options.mode == "compile" else WRONG
            reason = _line(error) + "".join(f" | {each}" for each in heard[:4])
        except CompilationError as error:
            outcome, reason = REFUSED, _line(error)
        except BaseException as error:
            cause = error.__cause__ if isinstance(error.__cause__, CompilationError) else error
            traceback.print_exc()
            outcome = REFUSED if isinstance(cause, CompilationError) else FAILED
            reason = f"{type(cause).__name__}: {_line(cause)}"
    result: dict[str, Any] = {"outcome": outcome, "reason": reason}
    if outcome == RIGHT:
        result["errors"] = [float(f"{error:.2g}") for error in ERRORS]
    if launched:
        result["cubin"] = _cubins(launched)
    return result


def _keep_launches() -> dict[str, Any]:
    """The last launch in the interpreter of each kernel, as they come."""
    from tlx_xdsl.compat.without_gpu import InterpretedKernel

    launched: dict[str, Any] = {}
    run = InterpretedKernel.run

    def kept(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = run(self, *args, **kwargs)
        launched[self.__name__] = result
        return result

    InterpretedKernel.run = kept
    return launched


def _cubins(launched: Mapping[str, Any]) -> str:
    """Compile what was launched; nothing where all compile, else what is said of the first that does not."""
    for each in launched.values():
        try:
            assert each.asm["cubin"]
        except Exception as error:
            return f"{type(error).__name__}: {_line(error)}"
    return ""


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " | ".join(lines[:4])[:400]


def _load(root: Path, file: str) -> ModuleType:
    """Import a tutorial; those that it imports by their names come from the same directory."""
    add_package(root / DIRECTORY)
    return import_file(root / DIRECTORY / f"{file}.py")


def import_file(path: Path) -> ModuleType:
    """Import a file, and what it imports from its folder."""
    sys.path.insert(0, str(path.parent))
    spec = spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def add_package(directory: Path) -> None:
    """Let scripts import the tutorials in `directory` by the names that they have in Meta's Triton."""
    tlx = sys.modules.get("triton.language.extra.tlx") or __import__("triton.language.extra.tlx", fromlist=["_"])
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE)
        package.__path__ = [str(directory)]
        sys.modules[PACKAGE] = package
        tlx.tutorials = package  # pyright: ignore[reportAttributeAccessIssue]


TUTORIALS = Collection("tests.conformance.tutorials", __doc__, _tutorial_cases, _load)

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    raise SystemExit(main())
