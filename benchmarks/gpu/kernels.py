"""Our kernels against cuBLAS, cuDNN, FlashAttention, torch and plain Triton on a Hopper GPU: checks first, then speed.

    make bench-gpu                                     (writes docs/performance.md and docs/images/performance.*)
    python benchmarks/gpu/kernels.py [--families gemm-fp16,rows,...] [--budget 1150] [--out DIR]
    python benchmarks/gpu/kernels.py --dry             (no GPU: small problems in the interpreter, made-up times)
    python benchmarks/gpu/kernels.py --screen          (our configurations against each other, not the rivals)
    python benchmarks/gpu/kernels.py --quick           (some problems within 3 minutes, into build/quick)
    python benchmarks/gpu/kernels.py --prepare         (before: what is compiled, ours and torch's, in parallel)
    python benchmarks/gpu/kernels.py --render FILE...  (page and plot from the figures of earlier runs)
        --name performance-rows --title "Speed of rows and of attention to a cache"     (another page)

Each family runs in a process of its own. Where one dies, because a kernel hung or faulted, another one goes on without
what was running, so that the rest of the family, and the other families, are not lost. Needs torch and Triton; run it
from a checkout. How is measured: measure.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu import measure, report

FAMILIES = (
    "gemm-fp16", "attention-128-fp16", "attention-64-fp16", "attention-backward-bf16",
    "gemm-bf16", "attention-128-bf16", "attention-64-bf16", "decode", "latent",
    "rows-rms-norm", "rows-rms-norm-backward", "rows-layer-norm", "rows-layer-norm-backward",
    "rows-rms-norm-residual", "rows-rms-norm-residual-backward",
    "rows-layer-norm-residual", "rows-layer-norm-residual-backward",
    "rows-softmax", "rows-softmax-backward", "rows-cross-entropy", "rows-cross-entropy-backward",
    "rows-swiglu", "rows-swiglu-backward", "rows-rope",
)  # fmt: skip
"""In the order in which they run: of the first seven the ones with targets first."""

FAMILY_LIMIT_S = 170.0
"""Seconds after which a family's process is ended: twice what it needs."""

RESTARTS, MORE_RESTARTS = 2, 8
"""How often a family goes on after its process has died; that of another program, which may try more kernels."""

BUDGET_S = 1150.0
"""Seconds for all families."""

QUICK_FAMILIES, QUICK_ONLY = ("gemm-bf16", "attention-128-bf16", "rows-softmax"), "4096"
QUICK_ROUNDS, QUICK_PREPARE_S, QUICK_BUDGET_S = 3, 80, 150
"""Families of `--quick`, what is in the names of their problems, cool rounds, and seconds to compile and for all.

What is timed is compared with its reference first, as always; the families' other checks are left out.
"""


def child(args: argparse.Namespace) -> int:
    """Run one family in this process."""
    import torch

    from benchmarks.gpu import backward, decode, rows, run
    from benchmarks.gpu.cases import families

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    timer = (run.DryTimer if args.dry else run.GpuTimer)(args.rounds)
    known = families(dry=args.dry, screen=args.screen)
    for each in (backward, decode, rows):
        known |= each.families(dry=args.dry, screen=args.screen)
    family = known[args.family]
    if args.prepare:
        run.prepare_family(family, timer, args.only, checks_all=not args.quick)
        return 0
    return 0 if run.run_family(family, args.result, timer, args.only, checks_all=not args.quick) else 1


def supervise(
    family: str, path: Path, options: list[str], deadline: float, program: str | None = None
) -> dict[str, Any]:
    """Run a family in processes of its own until it is finished or the time is over; returns what is known of it.

    `program` is run with the arguments that this one takes.
    """
    limit = deadline if program else min(time.monotonic() + FAMILY_LIMIT_S, deadline)
    for _ in range((MORE_RESTARTS if program else RESTARTS) + 1):
        left = limit - time.monotonic()
        if left <= 0:
            break
        command = [sys.executable, program or __file__, "--family", family, "--result", str(path), *options]
        try:
            status = subprocess.run(command, timeout=left, check=False).returncode
            why = f"exit status {status}"
        except subprocess.TimeoutExpired:
            status, why = -1, f"still running after {left:.0f} s"
        known = read(path, family)
        if known.get("finished") or not known["running"]:
            break
        print(f"{family}: {why} at {known['running']}", file=sys.stderr, flush=True)
        known["skipped"][known["running"]] = why
        if not known.get("checked"):
            # The report names the check; the others can't be run without it, the timings can.
            known["checks"].append({"label": known["running"], "error": None, "limit": 0, "ok": False, "why": why})
            known["checked"] = True
        path.write_text(json.dumps(known), encoding="utf-8")
    return read(path, family)


def prepare(names: Sequence[str], options: Sequence[str], seconds: float, together: int = 6) -> None:
    """Compile what families launch, ours and torch's, in some processes at a time: each family finds it on disk."""
    deadline = time.monotonic() + seconds
    waiting, running = list(names), list[subprocess.Popen[bytes]]()
    while (waiting or running) and time.monotonic() < deadline:
        running = [each for each in running if each.poll() is None]
        if waiting and len(running) < together:
            command = [sys.executable, __file__, "--family", waiting.pop(0), "--prepare", *options]
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(0.1)
    for each in running:
        each.kill()


def read(path: Path, family: str) -> dict[str, Any]:
    """Read the record that a family's processes have written."""
    empty = {"family": family, "checks": [], "cases": {}, "skipped": {}, "running": None}
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty


def write_results(
    records: list[dict[str, Any]], folder: Path, date: str, name: str = "performance", title: str = report.TITLE
) -> None:
    """Write page, plot and figures, to files of this name."""
    folder.mkdir(parents=True, exist_ok=True)
    images = folder / "images"
    figures = {"date": date, "families": records}
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    image = report.plot(records, images / f"{name}.png")
    shown = None if image is None else str(image.relative_to(folder))
    page = report.page(records, date, shown, title)
    (folder / f"{name}.md").write_text(page)
    print(page)


def merged(files: list[Path]) -> tuple[list[dict[str, Any]], str]:
    """The families of several runs in the order of FAMILIES, of each its last record, and the last run's date."""
    runs = [json.loads(file.read_text()) for file in files]
    known = {record["family"]: record for run in runs for record in run["families"]}
    return sorted(known.values(), key=lambda record: FAMILIES.index(record["family"])), runs[-1]["date"]


def selected(names: str) -> list[str]:
    """The families that are named, with commas; what stands before a `-` names all that begin with it.

    Raises ValueError for what names none.
    """
    found: list[str] = []
    for name in names.split(","):
        these = [each for each in FAMILIES if each == name or each.startswith(f"{name}-")]
        # `rows-softmax` is one, although `rows-softmax-backward` begins with it.
        these = [name] if name in FAMILIES else these
        if not these:
            raise ValueError(f"unknown family {name!r}, expected some of {', '.join(FAMILIES)}")
        found += [each for each in these if each not in found]
    return found


def failures(records: list[dict[str, Any]]) -> int:
    """Count the families that did not finish, or have a check that does not hold."""
    return sum(not record.get("finished") or not all(check["ok"] for check in record["checks"]) for record in records)


def main() -> None:
    """Run what the command line asks for; exit status 1 where a check failed or a family did not finish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="no GPU: small problems, made-up times")
    parser.add_argument("--screen", action="store_true", help="our configurations against each other")
    parser.add_argument(
        "--families", default=",".join(FAMILIES), help="which ones, with commas; `rows` are all of rows-..."
    )
    parser.add_argument("--only", default="", help="only problems with this in their names")
    parser.add_argument("--rounds", type=int, default=7, help="cool rounds")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds for everything")
    parser.add_argument("--out", type=Path, help="folder for performance.md, .json and images/ (default: docs/)")
    parser.add_argument(
        "--render", type=Path, nargs="+", metavar="FILE", help="write page and plot from performance.json of some runs"
    )
    parser.add_argument("--name", default="performance", help="of the files that are written")
    parser.add_argument("--title", default=report.TITLE, help="of the page")
    parser.add_argument("--quick", action="store_true", help="some problems, within 3 minutes, into build/quick")
    parser.add_argument("--prepare", action="store_true", help="time nothing: compile into the caches on disk")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    for path in args.render or ():
        if not path.is_file():
            parser.error(f"--render: expected figures of an earlier run (performance.json), found no file '{path}'")
    if not (args.dry or args.render or args.family):
        measure.need_hopper(parser.prog)
    if args.family:
        sys.stdout.flush()
        os._exit(child(args))  # a process with a faulted GPU context may not come to its end by itself
    if args.quick:
        args.families, args.rounds, args.budget = ",".join(QUICK_FAMILIES), QUICK_ROUNDS, QUICK_BUDGET_S
        args.out, args.only = args.out or ROOT / "build" / "quick", args.only or QUICK_ONLY
    scratch = Path(tempfile.mkdtemp(prefix="gpu-kernels-"))
    # A dry run and a comparison of our own configurations are no figures for the documentation.
    folder = args.out or (scratch / "out" if args.dry or args.screen else ROOT / "docs")
    if args.render:
        records, date = merged(args.render)
        write_results(records, folder, date, args.name, args.title)
        return
    try:
        names = selected(args.families)
    except ValueError as error:
        parser.error(str(error))
    options = [*(["--dry"] if args.dry else []), *(["--screen"] if args.screen else [])]
    options += ["--rounds", str(args.rounds), "--only", args.only]
    options += ["--quick"] if args.quick else []
    started = time.monotonic()
    if args.quick:
        print("compiling", flush=True)
        prepare(names, options, QUICK_PREPARE_S)
    if args.prepare:
        prepare(names, options, args.budget)
        print(f"prepared in {time.monotonic() - started:.0f} s", flush=True)
        return
    records: list[dict[str, Any]] = []
    date = datetime.date.today().isoformat()
    for name in names:
        print(f"== {name}, {time.monotonic() - started:.0f} s", flush=True)
        records.append(supervise(name, scratch / f"{name}.json", options, started + args.budget))
        # After each family: what comes later can't lose it.
        write_results(records, folder, date, args.name, args.title)
    print(f"{time.monotonic() - started:.0f} s in all; written to {folder}")
    if folder.parent != scratch:
        shutil.rmtree(scratch)
    sys.exit(1 if failures(records) else 0)


if __name__ == "__main__":
    main()
