"""Run Meta's TLX tests (`python/test/unit/language/test_tlx_*.py` of its Triton) through the drop-in.

    python -m tests.conformance.meta SUITE_ROOT --target sm_90a --all --json out.json

Each test runs as it is written. Without a GPU `torch.cuda` is faked: tensors lie in the CPU's memory, and launches go
to the interpreter; with `--gpu` they go to the device. Where a test ends the process, waits for the GPU for ever, or
leaves the CUDA context unusable, the rest runs in a new one.

What fails runs once more without the statements that read the text of IR or PTX: what still fails then is wrong in
another way. (With `--text-asserts-yes` all tests run so.) `meta_reasons.py` has the rules that sort failures by their
cause.

The suite is not part of this project: SUITE_ROOT is a checkout of it. torch must be importable.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.meta_reasons import FAILURES, reason_of
from tests.conformance.tutorials import DIRECTORY as TUTORIALS

DIRECTORY = Path("python/test/unit/language")
NOT_NVIDIA = ("test_tlx_amd", "test_tlx_async_load_partial_mask")
"""Files for AMD's GPUs alone."""

ROOT = Path(__file__).parents[2]
_KEPT_EVERY = 10.0
"""Seconds between two times that the results of a file that is running are kept."""
_ENDS_LATER = 20.0
"""Seconds after a test's time is up until its process is killed: a wait for the GPU hears no signal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 whatever the tests say, as the numbers are the result."""
    parsed = _parser().parse_args(arguments)
    if parsed.summary:
        _report({name: each for path in parsed.summary for name, each in _classified(path).items()})
        return 0
    folder = (parsed.suite / DIRECTORY).resolve()
    files = sorted(each.name for each in folder.glob("test_tlx_*.py") if not each.name.startswith(NOT_NVIDIA))
    if parsed.files:
        files = [name for name in files if any(part in name for part in parsed.files)]
    if not files:
        print(f"error: no test file below {folder}", file=sys.stderr)
        return 1
    results: dict[str, dict[str, Any]] = {}

    def keep(found: dict[str, dict[str, Any]]) -> None:
        results.update(found)
        for each in results.values():
            each["class"] = reason_of(each)
        if parsed.json:
            parsed.json.write_text(json.dumps({"target": parsed.target, "tests": results}, indent=1))

    for name in files:
        found = run_file(folder, name, parsed, keep)
        failed = [nodeid for nodeid, each in found.items() if each["outcome"] in FAILURES]
        if failed and not parsed.text_asserts_yes:
            by_value = argparse.Namespace(**{**vars(parsed), "text_asserts_yes": True})
            again = run_file(folder, name, by_value, lambda _: None, failed)
            for nodeid, each in again.items():
                found[nodeid] |= {"without_text": each["outcome"], "reason_without_text": each["reason"]}
            keep(found)
    _report(results)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.meta", description=__doc__.split("\n")[0])
    parser.add_argument("suite", type=Path, nargs="?", metavar="SUITE_ROOT", help="a checkout of Meta's Triton")
    parser.add_argument("--summary", type=Path, nargs="+", metavar="JSON", help="run nothing: sum up earlier results")
    parser.add_argument("--target", default="sm_90a", help="GPU to assume without one (sm_90a)")
    parser.add_argument("--gpu", action="store_true", help="run on the GPU; nothing is faked")
    parser.add_argument("--compile-only", action="store_true", help="compile for the target; what is computed is wrong")
    parser.add_argument(
        "--per-function", type=int, default=4, metavar="N", help="cases of a function, evenly spaced (4)"
    )
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--text-asserts-yes", action="store_true", help="leave out what reads the text of IR or PTX")
    parser.add_argument("--timeout", type=int, default=120, metavar="S", help="seconds for a test (120)")
    parser.add_argument("--files", nargs="*", metavar="PART", help="only files whose names contain one of these")
    parser.add_argument("-k", dest="keyword", help="only tests that match, as pytest's -k")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the outcome and the reason of each test")
    return parser


def _classified(path: Path) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = json.loads(path.read_text())["tests"]
    for each in results.values():
        each["class"] = reason_of(each)
    return results


def run_file(
    folder: Path,
    name: str,
    parsed: argparse.Namespace,
    keep: Callable[[dict[str, dict[str, Any]]], None],
    only: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Run the tests of one file, in as many processes as it takes; returns the outcome of each by its pytest name.

    `keep` gets the outcomes so far, again and again: a run that is ended loses none. `only` names tests, where not all
    of the file are to run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "results.jsonl"
        log.touch()
        while True:
            before = len(log.read_text().splitlines())
            command = _command(folder / name, parsed)
            run = subprocess.Popen(
                command, cwd=folder, env=_environment(log, Path(scratch), parsed, only), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            while True:
                try:
                    printed, errors = run.communicate(timeout=_KEPT_EVERY)
                    break
                except subprocess.TimeoutExpired:
                    keep(_results(_lines(log)))
                    if time.time() - log.stat().st_mtime > parsed.timeout + _ENDS_LATER:
                        run.kill()
            lines = _lines(log)
            done = _results(lines)
            keep(done)
            print(f"{name}: {len(done)} done, exit {run.returncode}", file=sys.stderr, flush=True)
            if run.returncode in (0, 1, 5) or len(lines) == before:
                if run.returncode not in (0, 1, 5):
                    done[name] = {"outcome": "error", "reason": printed[-3000:] + errors[-3000:]}
                return done
            with log.open("a") as more:
                # A test that began and has no outcome has ended the process.
                for nodeid in {each["nodeid"] for each in lines} - done.keys():
                    message = f"the process ended with {run.returncode}: {errors[-2000:]}"
                    record = {"nodeid": nodeid, "outcome": "crashed", "reason": message, "seconds": 0}
                    more.write(json.dumps(record) + "\n")


def _lines(log: Path) -> list[dict[str, Any]]:
    """The records in the log, but for one that is being written."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _results(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The outcomes by the test's name; a test that has only begun has none."""
    return {each.pop("nodeid"): each for each in map(dict, lines) if "outcome" in each}


def _command(path: Path, parsed: argparse.Namespace) -> list[str]:
    return [
        sys.executable, "-m", "pytest", str(path), "-q", "-rN", "--tb=no",
        "-p", "tests.conformance.meta_plugin", "-p", "no:cacheprovider", "-p", "no:xdist",
        # The suite's own fixtures, also where nothing marks the checkout's root for pytest.
        "--confcutdir", str(parsed.suite.resolve()),
        *(["-k", parsed.keyword] if parsed.keyword else []),
    ]  # fmt: skip


def _environment(log: Path, scratch: Path, parsed: argparse.Namespace, only: Sequence[str]) -> dict[str, str]:
    (scratch / "only.json").write_text(json.dumps(list(only)))
    options = {
        "log": str(log),
        "only": str(scratch / "only.json"),
        "target": parsed.target,
        "tutorials": str(parsed.suite.resolve() / TUTORIALS),
        "mode": "launch" if parsed.gpu else "compile" if parsed.compile_only else "interpret",
        "per_function": 0 if parsed.all else parsed.per_function,
        "text_asserts_yes": parsed.text_asserts_yes,
        "timeout": parsed.timeout,
    }
    # Tests start processes of their own: these are changed as they begin.
    (scratch / "sitecustomize.py").write_text(
        "from tests.conformance import meta_process\n\nmeta_process.begin_child()\n"
    )
    path = [str(ROOT), str(scratch), os.environ.get("PYTHONPATH")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        # Modules that are changed as they are imported leave nothing for other runs.
        "PYTHONPYCACHEPREFIX": str(scratch / "pycache"),
        "TLX_META_TESTS": json.dumps(options),
    }


def _report(results: dict[str, dict[str, Any]]) -> None:
    """Print the number of outcomes by file, and of failures by class."""
    by_file: dict[str, Counter[str]] = {}
    for nodeid, each in results.items():
        by_file.setdefault(nodeid.partition("::")[0], Counter())[each["outcome"]] += 1
    total = sum(by_file.values(), Counter[str]())
    for name, counts in (*sorted(by_file.items()), ("sum", total)):
        print(f"{name:40}", *(f"{outcome} {number}" for outcome, number in sorted(counts.items())))
    classes = Counter(each["class"] for each in results.values() if each["class"])
    for name, number in classes.most_common():
        print(f"{number:5} {name}")


if __name__ == "__main__":
    sys.exit(main())
