"""Speed of our kernels with each ptxas, in one process: the same text by each, as ratios to stock Triton's own choice.

    python benchmarks/gpu/ptxas_speeds.py PATH... [--only attention] [--rounds 7] [--dry]

A PATH is a ptxas, one that `xz` has compressed, or a folder of such files. Triton's two are there in any case. All take
turns (`measure.py`), each result is checked, and what a ptxas makes wrong is not timed. Above 1 a ptxas is faster than
stock's; in brackets stand the registers of a thread, and the spilled bytes where there are any.
"""

from __future__ import annotations

import argparse
import gc
import lzma
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from benchmarks.gemm import fp8
from benchmarks.gpu import backward, rows
from benchmarks.gpu.cases import OURS, Case, attention_family, gemm_family
from benchmarks.gpu.run import DryTimer, GpuTimer
from tlx_xdsl.backend import BackendResult, compile_ttgir
from tlx_xdsl.backend.assemblers import STOCK, Assembler, assembler, found
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.kernels.calls import launching
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.runtime import build
from tlx_xdsl.runtime.driver import cache

TIMED = {
    "gemm fp16": ("4096 x 4096 x 4096", "8192 x 8192 x 8192"),
    "gemm fp8": ("4096x4096x4096 tensor fast", "4096x4096x4096 rows fast", "4096x4096x4096 blocks exact"),
    "attention fp16": (
        "(4, 16, 4096, 128)",
        "(4, 16, 4096, 128) causal",
        "(4, 16, 4096, 64)",
        "(4, 16, 4096, 64) causal",
    ),
    "attention backward bf16": ("(4, 16, 4096, 128)", "(4, 16, 4096, 128) causal", "(4, 16, 4096, 64)"),
    "rms_norm bf16": (),
}
"""The cases of each family; none means the first."""


def cases(dry: bool) -> Iterator[tuple[str, Case]]:
    """The cases to time, with their names."""
    families: dict[str, list[Case]] = {
        "gemm fp16": gemm_family("fp16", dry, screen=True).cases,
        "gemm fp8": fp8.family(dry).cases,
        "attention fp16": [case for dim in (128, 64) for case in attention_family(dim, "fp16", dry, screen=True).cases],
        "attention backward bf16": backward.families(dry=dry, screen=True)["attention-backward-bf16"].cases,
        "rms_norm bf16": rows.families(dry=dry, screen=True)["rows-rms-norm"].cases,
    }
    for family, names in TIMED.items():
        known = {case.name: case for case in families[family]}
        for name in names or tuple(known)[:1]:
            yield f"{family} {name}", known[name]


def programs(paths: Sequence[Path], scratch: Path) -> Iterator[Assembler]:
    """The assemblers at `paths`; compressed ones are unpacked into `scratch`. Raises SystemExit for what is none."""
    for path in paths:
        if path.is_dir():
            yield from programs(sorted(each for each in path.iterdir() if each.is_file()), scratch)
            continue
        program = path
        if path.suffix == ".xz":
            program = scratch / path.stem
            program.write_bytes(lzma.decompress(path.read_bytes()))
            program.chmod(0o755)
        if (made := assembler(str(program), path.name)) is None:
            raise SystemExit(f"{path}: expected a ptxas that runs")
        yield made


class Compiled:
    """Recorder of compiles: the assembler, registers and spills of each kernel."""

    def __init__(self):
        self.results: list[BackendResult] = []

    def __call__(self, *args: Any, **options: Any) -> BackendResult:
        """Compile as `tlx_xdsl.backend.compile_ttgir` does, and note what came out."""
        self.results.append(compile_ttgir(*args, **options))
        return self.results[-1]

    def of(self, tool: str) -> str:
        """Registers and spills, of the kernel with most of them. Raises RuntimeError where another tool made one."""
        makers = {result.assembler for result in self.results}
        if len(makers) != 1 or (tool != STOCK and makers != {str(assembler(tool, "pinned"))}):
            raise RuntimeError(f"expected kernels by {tool}, found {', '.join(sorted(makers)) or 'none compiled'}")
        spills = max(result.resources.spill_store_bytes for result in self.results)
        registers = max(result.resources.registers for result in self.results)
        return f"{registers}" + (f", {spills} B spilled" if spills else "")


def forget(folder: Path) -> None:
    """Have kernels compiled again: plans, launchers and binaries of before would be taken whatever assembles now."""
    os.environ[cache.FOLDER] = str(folder)
    launching._launcher.cache_clear()
    for each in gc.get_objects():
        # Not isinstance, for which torch's deprecated objects warn.
        if issubclass(type(each), PlannedFunction):
            each._plans.clear()
            each._recent = ()
            each._questions.clear()


def launch_by(tool: str, case: Case, timer: GpuTimer | DryTimer, dry: bool, scratch: Path) -> tuple[Any, str]:
    """Our launch of a case, assembled by a tool, run once and checked, and what its kernels need.

    Raises RuntimeError where its result is wrong.
    """
    os.environ["TLX_PTXAS"] = tool
    forget(scratch / f"{tool.replace('/', '_')}-{case.name}")
    build.compile_ttgir = compiled = Compiled()
    makers, verify = case.make()
    launch = makers[OURS]()
    timer.first(launch, case.name)
    checked = verify()
    for check in checked.values() if isinstance(checked, dict) else [checked]:
        if not check.ok:
            raise RuntimeError(f"wrong: {check}")
    return launch, "" if dry else compiled.of(tool)


def time_case(case: Case, tools: dict[str, str], timer: GpuTimer | DryTimer, dry: bool, scratch: Path) -> list[str]:
    """The cells of a case: milliseconds with stock's own ptxas, and each other's speed beside it."""
    launches: dict[str, Any] = {}
    notes: dict[str, str] = {}
    for name, tool in tools.items():
        try:
            launches[name], notes[name] = launch_by(tool, case, timer, dry, scratch)
        except (RuntimeError, ValueError, CompilationError) as error:  # the other cells are not lost
            notes[name] = str(error).splitlines()[0]
    times = timer.cool(launches)["times"]
    base = times.get(STOCK)
    cells = [f"{median(base):.4f} ms ({notes[STOCK]})" if base else notes[STOCK]]
    for name in (each for each in tools if each != STOCK):
        if name not in times:
            cells.append(notes[name])
        elif base is None:
            cells.append(f"{median(times[name]):.4f} ms ({notes[name]})")
        else:
            ratio = median(stock / own for stock, own in zip(base, times[name], strict=True))
            cells.append(f"{ratio:.3f} ({notes[name]})")
    return cells


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--only", default="", help="only cases with this in their names")
    parser.add_argument("--rounds", type=int, default=7, help="cool rounds")
    parser.add_argument("--dry", action="store_true", help="no GPU: small problems, made-up times")
    args = parser.parse_args()
    # What old ones make wrong is found here.
    os.environ["TLX_ALLOW_OLD_PTXAS"] = "1"
    timer = (DryTimer if args.dry else GpuTimer)(args.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        here = (*programs(args.paths, Path(scratch)), *(each for each in found() if each.origin.startswith("triton's")))
        tools = {STOCK: STOCK, **{each.release: each.path for each in sorted(here, key=lambda each: each.numbers)}}
        device = "no GPU: times are made up" if args.dry else torch.cuda.get_device_name()
        print(f"{device}\n\n| | {' | '.join(tools)} |\n|{'---|' * (len(tools) + 1)}", flush=True)
        for name, case in cases(args.dry):
            if args.only in name:
                print(f"| {name} | {' | '.join(time_case(case, tools, timer, args.dry, Path(scratch)))} |", flush=True)


if __name__ == "__main__":
    main()
