"""A stranger's first hour, from a clone and the README alone: each step timed, and how long it was silent.

    python -m release.stranger [--from ADDRESS] [--keep DIR]

Clones the repository (this one by default) to an empty folder, does what the README says there, and compares what it
says with what happens: `make demo` to a cubin, the README's own kernel to a cubin and to a run, its race, its
deadlock, the deadlock fixed, its timeline, and the first puzzle, as it is given and solved. Run by hand: it needs a
package index, and minutes. Exit status 1 where a step fails, says something else or takes longer than the limits below.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

MILESTONE, SETUP, SILENCE = 600.0, 180.0, 5.0
"""Seconds: limits for each milestone, for the set-up, and for the time in which it prints nothing."""

PUZZLE = "notebooks/puzzles/01_add.py"
"""The puzzle that the README's page of puzzles begins with."""


@dataclass
class Step:
    """A command as it was run."""

    name: str
    seconds: float = 0.0
    processor: float = 0.0
    """Seconds of processors, of the command and all that it started."""
    silence: float = 0.0
    """The longest time in which it printed nothing."""
    output: str = ""
    status: int = 0
    marks: dict[str, float] = field(default_factory=dict)
    """Seconds until a text was printed first, for those that were asked for."""


def run(name: str, command: Sequence[str], folder: Path, marks: Sequence[str] = ()) -> Step:
    """Run a command without a terminal; its output is shown while it comes."""
    step = Step(name)
    print(f"\n== {name}: {' '.join(command)}", flush=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    # Not what this process has: a stranger has no such variable.
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    process = subprocess.Popen(
        command, cwd=folder, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    last = start
    with process.stdout as stream:
        while True:
            part = os.read(stream.fileno(), 1 << 16)
            now = time.monotonic()
            step.silence, last = max(step.silence, now - last), now
            if not part:
                break
            text = part.decode(errors="replace")
            sys.stdout.write(text)
            sys.stdout.flush()
            step.output += text
            for mark in marks:
                if mark in step.output:
                    step.marks.setdefault(mark, now - start)
    step.status = process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    step.seconds = time.monotonic() - start
    step.processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return step


def blocks(readme: str, language: str) -> list[str]:
    """The texts between fences of the README."""
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)


def shown(readme: str) -> tuple[str, str, list[str], str]:
    """The README's kernel, the command that compiles it, its runs (right, with a race), and the deadlock's message."""
    compiling = re.search(r"`tlx (compile tile_copy\.py[^`]*)`", readme)
    deadlock = re.search(r"`(deadlock: [^`]*)`", readme)
    assert compiling is not None
    assert deadlock is not None
    runs = [each for each in blocks(readme, "console") if each.startswith("$ tlx run")]
    return blocks(readme, "python")[0], compiling[1], runs, " ".join(deadlock[1].split())


def first_hour(address: str, folder: Path) -> tuple[list[Step], list[str]]:
    """All steps, and what was wrong."""
    wrong: list[str] = []
    steps = [run("clone", ["git", "clone", "--quiet", address, "checkout"], folder)]
    checkout = folder / "checkout"
    readme = (checkout / "README.md").read_text(encoding="utf-8")
    compiles = "tlx compile examples/hopper_gemm_ws.py"
    steps.append(run("make demo: set-up, and the GEMM to a cubin", ["make", "demo"], checkout, ["matmul for sm_90a"]))
    if not (checkout / "build" / "matmul.cubin").exists():
        wrong.append(f"make demo ({compiles}) wrote no cubin")
    tlx = str(checkout / ".venv" / "bin" / "tlx")
    kernel, compiling, (right, race), deadlock = shown(readme)
    path = checkout / "tile_copy.py"

    def command(block: str) -> list[str]:
        return [tlx, *block.partition("\n")[0].removeprefix("$ tlx ").split()]

    path.write_text(kernel, encoding="utf-8")
    steps.append(run("README's kernel to a cubin", [tlx, *compiling.split()], checkout))
    if not (checkout / "build" / "tile_copy.cubin").exists():
        wrong.append("README's kernel: no cubin")
    steps.append(run("a run in the interpreter", command(right), checkout))
    wrong += _unless(steps[-1], 0, "largest error 0.0e+00")
    path.write_text("".join(each for each in kernel.splitlines(True) if "barrier_wait" not in each), encoding="utf-8")
    steps.append(run("a race, as the README makes it", command(race), checkout))
    wrong += _unless(steps[-1], 1, race.splitlines()[1])
    path.write_text(kernel.replace("TILE * TILE * 2", "TILE * TILE * 4"), encoding="utf-8")
    steps.append(run("a deadlock, as the README makes it", command(right), checkout))
    wrong += _unless(steps[-1], 1, deadlock)
    path.write_text(kernel, encoding="utf-8")
    steps.append(run("the deadlock fixed", command(right), checkout))
    wrong += _unless(steps[-1], 0, "largest error 0.0e+00")
    steps.append(run("a timeline", [*command(right.partition(" --check")[0]), "--timeline", "out.html"], checkout))
    wrong += _unless(steps[-1], 0, "cycles predicted")
    puzzle, python = checkout / PUZZLE, str(checkout / ".venv" / "bin" / "python")
    # As the README's page of puzzles says; what `make demo` installed lacks marimo.
    steps.append(run("what puzzles need", [python, "-m", "pip", "install", "--quiet", ".[notebook]"], checkout))
    steps.append(run("the first puzzle, as it is given", [python, PUZZLE], checkout))
    wrong += _unless(steps[-1], 1, "load out of bounds")
    given = puzzle.read_text(encoding="utf-8")
    puzzle.write_text(re.sub(r"(x \+ at|y \+ at|total)\)", r"\1, mask=at < n)", given), encoding="utf-8")
    steps.append(run("the first puzzle, solved", [python, PUZZLE], checkout))
    wrong += _unless(steps[-1], 0, "right: in 3 orders")
    return steps, wrong


MILESTONES = {
    "first right kernel": "a run in the interpreter",
    "first race": "a race, as the README makes it",
    "first timeline": "a timeline",
    "first solved puzzle": "the first puzzle, solved",
}
"""What a newcomer wants, and the step that has it."""


def milestones(steps: Sequence[Step]) -> dict[str, float]:
    """The seconds from the clone to each milestone that was reached, all steps before it included."""
    ends = {each.name: sum(step.seconds for step in steps[: at + 1]) for at, each in enumerate(steps)}
    return {name: ends[step] for name, step in MILESTONES.items() if step in ends}


def _unless(step: Step, status: int, text: str) -> list[str]:
    """List the fault of a step that should end with this status and say this."""
    if step.status == status and text in step.output:
        return []
    return [f"{step.name}: expected exit status {status} and '{text}', found {step.status}"]


def setup_seconds(demo: Step) -> float:
    """Seconds of `make demo` until it began to compile: the rest of them is no set-up."""
    compiling = next((found for found in demo.marks.values()), demo.seconds)
    total = re.search(r"total\s+([\d.]+)\s*$", demo.output, re.MULTILINE)
    return compiling - (float(total[1]) / 1000 if total else 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do all steps and print the table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="address", default=str(ROOT), help="what is cloned (default: this repository)")
    parser.add_argument("--keep", type=Path, help="an empty folder for the clone, which then stays")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        steps, wrong = first_hour(args.address, folder)
    print(f"\n{'step':<44} {'seconds':>8} {'processor':>10} {'silent':>7}")
    for step in steps:
        print(f"{step.name:<44} {step.seconds:8.1f} {step.processor:10.1f} {step.silence:7.1f}")
    total, setup = sum(each.seconds for each in steps), setup_seconds(steps[1])
    print(f"{'all':<44} {total:8.1f} {sum(each.processor for each in steps):10.1f}")
    print(f"set-up: {setup:.1f} s of `make demo`; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    reached = milestones(steps)
    print("; ".join(f"{name} after {seconds / 60:.1f} min" for name, seconds in reached.items()))
    limits = (
        *((name, seconds, MILESTONE) for name, seconds in reached.items()),
        ("set-up", setup, SETUP),
        ("silence of make demo", steps[1].silence, SILENCE),
    )
    wrong += [f"{name}: {found:.1f} s, at most {limit:g}" for name, found, limit in limits if found > limit]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
