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
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

DIRECTORY = Path("third_party/tlx/tutorials")
PACKAGE = "triton.language.extra.tlx.tutorials"
RIGHT, WRONG, REFUSED, FAILED, SLOW = "right", "wrong numbers", "refused", "failed", "no end"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases of a target; the exit status is 1 if one is not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="a checkout of the suite")
    parser.add_argument("--target", default="sm_100a", choices=("sm_90a", "sm_100a"))
    parser.add_argument("--only", help="the cases whose names contain this")
    parser.add_argument("--json", type=Path, help="write {name: outcome, reason, errors, seconds} to this file")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each case")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--ptx", dest="mode", action="store_const", const="ptx", help="run the final PTX on the CPU")
    mode.add_argument("--gpu", dest="mode", action="store_const", const="launch", help="launch on the device")
    mode.add_argument("--compile", dest="mode", action="store_const", const="compile", help="compile, run nothing")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.set_defaults(mode="interpret")
    options = parser.parse_args(argv)
    if options.case is not None:
        print(json.dumps(_run(options.root, options.case, options.target, options.mode)))
        return 0
    results: dict[str, dict[str, Any]] = {}
    for name in _names(options.target, options.only):
        results[name] = result = _isolated(options, name)
        print(f"{name:<50} {result['outcome']:<14} {result['seconds']:7.1f} s  {result['reason']}", flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(dict(Counter(result["outcome"] for result in results.values())))
    return int(any(result["outcome"] != RIGHT for result in results.values()))


def _names(target: str, only: str | None) -> list[str]:
    from tests.conformance import tutorial_models  # noqa: F401  (enters its cases)
    from tests.conformance.tutorial_cases import CASES

    return [name for name, case in CASES.items() if target in case.targets and (only or "") in name]


def _isolated(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Run a case in a process."""
    command = [sys.executable, "-m", "tests.conformance.tutorials", str(options.root), "--case", name]
    command += ["--target", options.target, *_FLAGS[options.mode]]
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


def _run(root: Path, name: str, target: str, mode: str) -> dict[str, Any]:
    """Run a case here."""
    import tlx_xdsl.compat
    from tlx_xdsl import CompilationError

    if mode != "launch":
        from tests.conformance.cpu.fake_cuda import install

        install(target)
    tlx_xdsl.compat.install(mode=mode, target=target)  # pyright: ignore[reportArgumentType]
    warnings.simplefilter("ignore")
    from tests.conformance import tutorial_models  # noqa: F401  (enters its cases)
    from tests.conformance.tutorial_cases import CASES, ERRORS, WrongNumbers

    try:
        CASES[name].run(lambda file: _load(root.resolve() / DIRECTORY, file))
    except WrongNumbers as error:
        if mode != "compile":
            return {"outcome": WRONG, "reason": _line(error)}
    except CompilationError as error:
        return {"outcome": REFUSED, "reason": _line(error)}
    except BaseException as error:
        cause = error.__cause__ if isinstance(error.__cause__, CompilationError) else error
        traceback.print_exc()
        outcome = REFUSED if isinstance(cause, CompilationError) else FAILED
        return {"outcome": outcome, "reason": f"{type(cause).__name__}: {_line(cause)}"}
    return {"outcome": RIGHT, "reason": "", "errors": [float(f"{error:.2g}") for error in ERRORS]}


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " | ".join(lines[:4])[:400]


def _load(directory: Path, file: str) -> ModuleType:
    """Import a tutorial; those that it imports by their names come from the same directory."""
    add_package(directory)
    path = directory / f"{file}.py"
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


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    raise SystemExit(main())
