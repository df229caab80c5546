"""Check public kernels at the commit before a defect was mended, and at the commit that mended it.

    python -m tests.conformance.harvest MIRRORS --json out.json

MIRRORS is a folder with git directories of the suites (`defects.py` says which). Each case calls what the suite's own
callers or tests call, with every launch checked (`tlx_xdsl.compat.install(mode="check")`): before, the defect must be
found at its kernel; after, nothing may be. torch must be importable. Nothing of the suites is kept here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance.isolated import run_isolated

FOUND, CLEAN, STOPPED = "found", "clean", "stopped"
SIDES = ("before", "after")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases; the exit status is 1 where one is not found before, or reported after."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirrors", type=Path, metavar="MIRRORS")
    parser.add_argument("--only", default="", help="the cases whose names contain this")
    parser.add_argument("--seconds", type=float, default=2.0, help="time to check each launch (2)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each side of a case (300)")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(argv)
    from tests.conformance.defects import DEFECTS

    work = [(name, side) for name in DEFECTS if options.only in name for side in SIDES]
    results = run_isolated(partial(_checked, options), work, 1, batch=1, seconds=options.timeout)
    wrong = 0
    record: dict[str, dict[str, Any]] = {}
    for (name, side), result in zip(work, results, strict=True):
        result = {"outcome": STOPPED, "reason": result["died"], "findings": []} if "died" in result else result
        record.setdefault(name, {})[side] = result
        wrong += result["outcome"] != (FOUND if side == "before" else CLEAN)
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    found = sum(each["before"]["outcome"] == FOUND for each in record.values())
    clean = sum(each["after"]["outcome"] == CLEAN for each in record.values())
    print(f"{len(record)} defects: {found} found before they were mended, {clean} clean after")
    return int(wrong > 0)


def _checked(options: argparse.Namespace, work: tuple[str, str]) -> dict[str, Any]:
    """Check a side of a case here."""
    import tlx_xdsl.compat
    from tests.conformance.defects import DEFECTS
    from tlx_xdsl.compat.checked import RECORD, CheckedKernel
    from tlx_xdsl.errors import CompilationError

    name, side = work
    defect = DEFECTS[name]
    commit = f"{defect.fix}~1" if side == "before" else defect.fix
    warnings.simplefilter("ignore")
    began, reason = time.monotonic(), ""
    with tempfile.TemporaryDirectory() as folder:
        check_out(options.mirrors / defect.suite, commit, defect.paths, Path(folder) / defect.suite)
        if defect.fakes_cuda:
            # For the rest of the process.
            tlx_xdsl.compat.torch_without_gpu(defect.target).__enter__()
        CheckedKernel.seconds = options.seconds
        tlx_xdsl.compat.install(mode="check", target=defect.target)
        try:
            defect.run(Path(folder))
        except CompilationError as error:
            reason = error.message
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            if not RECORD.found:
                traceback.print_exc()
    reports = [
        {
            "rule": each.rule,
            "place": str(each.diagnostic.location).rpartition("/")[2],
            "message": each.diagnostic.message,
        }
        for each in RECORD.findings
    ]
    outcome = FOUND if RECORD.errors else STOPPED if reason else CLEAN
    seconds = round(time.monotonic() - began, 1)
    print(
        f"{name:<40} {side:<7} {outcome:<8} {seconds:6.1f} s, {RECORD.launches} launches  {reason[:120]}",
        file=sys.stderr,
    )
    for each in reports:
        print(f"    {each['place']}: {each['message']}", file=sys.stderr)
    return {
        "outcome": outcome, "reason": reason, "seconds": seconds, "launches": RECORD.launches, "findings": reports,
    }  # fmt: skip


def check_out(mirror: Path, commit: str, paths: Sequence[str], folder: Path) -> None:
    """Write files of a commit into a folder."""
    folder.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "--git-dir", str(mirror), "archive", commit, *paths], check=True, capture_output=True
    )  # fmt: skip
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
