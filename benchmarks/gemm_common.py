"""What the GEMM benchmarks share: inputs, launches of one kernel or several, and a program around a family of cases.

A benchmark is a `Part`: a family for `gpu_run`, which checks and times each case and writes to a file after every step;
the launches whose kernels are compiled ahead, in parallel processes (`gemm_compile`), into the cache on disk; and a
table. `main(part)` is its command line; `gemm_report` runs several.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import gpu_kernels
import gpu_report
from gemm_shapes import Shape

OURS = gpu_report.OURS

MULTIPROCESSORS = 132
"""Of the GPU that kernels are compiled for ahead."""

DRY_MOST = 40
"""The largest size of a dry run."""


@dataclass(frozen=True)
class Part:
    """A benchmark: see the top of this file. `rounds` of `burst` launches are timed, each after `idle_s` seconds.

    `program` is its file, which `gemm_report` runs; `limit_s` are the seconds that it takes at most, `stall_s` those
    after which a process that has written nothing is taken to hang.
    """

    name: str
    program: str
    family: Callable[[bool], Any]
    launches: Callable[[], Iterable[Any]]
    table: Callable[[Mapping[str, Any]], str]
    rounds: int = 5
    burst: int = 3
    idle_s: float = 0.1
    limit_s: float = 150.0
    stall_s: float = 20.0


# --- problems -----------------------------------------------------------------------------------------------------


def dry_size(size: int) -> int:
    """The size that a dry run has in the place of another; what is no multiple of 8 stays so."""
    return size if size <= DRY_MOST else DRY_MOST - (-size) % 8


def dry_shape(shape: Shape) -> Shape:
    """A small problem in the place of another, with its layout, its type and its alignment."""
    return Shape(dry_size(shape.m), dry_size(shape.n), dry_size(shape.k), shape.layout, shape.dtype)


def factors(shape: Shape, make: Callable[[int, int, int], Any]) -> tuple[Any, Any]:
    """A and B of a problem; `make(rows, columns, seed)` makes a matrix by rows."""
    a = make(shape.m, shape.k, 1) if shape.layout[0] == "N" else make(shape.k, shape.m, 1).T
    b = make(shape.k, shape.n, 2) if shape.layout[1] == "N" else make(shape.n, shape.k, 2).T
    return a, b


def untouched(shape: Sequence[int], dtype: str) -> Any:
    """An array whose memory is not used: for what looks at types, shapes and strides only."""
    import numpy as np

    from tlx_xdsl.runtime.driver.host_values import numpy_dtype

    return np.empty(tuple(shape), numpy_dtype(dtype))


def untouched_problem(shape: Shape) -> tuple[Any, Any, Any]:
    """A, B and C of a problem, for what looks at types, shapes and strides only."""
    a, b = factors(shape, lambda rows, columns, _: untouched((rows, columns), shape.dtype))
    return a, b, untouched((shape.m, shape.n), shape.dtype)


def random_problem(shape: Shape, *, dry: bool) -> tuple[Any, Any, Callable[[], Any]]:
    """A and B of a problem on the GPU (a small one on the CPU), and what makes outputs that are NaN."""
    from tests.unit.kernels import gpu_checks

    problem = dry_shape(shape) if dry else shape
    device, dtype = "cpu" if dry else "cuda", gpu_checks.DTYPES[shape.dtype]
    a, b = factors(problem, lambda rows, columns, seed: gpu_checks.random((rows, columns), dtype, device, seed))
    return a, b, lambda: gpu_checks.poisoned((problem.m, problem.n), dtype, device)


def compared(shape: Shape, outs: Mapping[str, Any], a: Any, b: Any) -> dict[str, Any]:
    """A check of each output against the product in float32."""
    from tests.unit.kernels import gpu_checks

    expected, limit = a.float() @ b.float(), gpu_checks.LIMITS[shape.dtype]
    return {
        name: gpu_checks.Check(f"{shape} {name}", gpu_checks.relative_error(out, expected), limit)
        for name, out in outs.items()
    }


# --- launches -----------------------------------------------------------------------------------------------------


def each_launch(made: Any) -> Iterator[Any]:
    """The launches of what a `..._launch` function has made: one, several in order, or something that holds them."""
    if hasattr(made, "constexprs"):
        yield made
    else:
        yield from getattr(made, "parts", made)


def bound(made: Any) -> Callable[[], Any]:
    """A function that runs what a `..._launch` function has made."""
    if callable(getattr(made, "bind", None)):
        return made.bind()
    runs = [each.bind() for each in made]

    def run() -> None:
        for each in runs:
            each()

    return run


def described(made: Any) -> str:
    """The kernels that run, with tiles and stages."""
    return " + ".join(_described(each) for each in each_launch(made))


_UNSAID = ("CLUSTER", "COLUMNS", "PART", "BUFFERS", "GROUP", "ROWS")
"""In the names of constants that follow from the problem or from the tile."""


def _described(launch: Any) -> str:
    values = dict(launch.constexprs)
    tile = "x".join(str(values.pop(name)) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K") if name in values)
    words = [launch.kernel.source.name, tile, f"grid={'x'.join(map(str, launch.grid))}"]
    for name, value in values.items():
        if value and isinstance(value, int) and not any(each in name for each in _UNSAID):
            words.append(name.lower() if value is True else f"{name.lower()}={value}")
    if launch.cluster != (1, 1, 1):
        words.append(f"cluster={'x'.join(map(str, launch.cluster))}")
    return " ".join(each for each in words if each)


def on_large_gpu() -> None:
    """Make launches for arrays of the CPU as for a GPU with all of its multiprocessors: to compile them ahead."""
    from tlx_xdsl.kernels.calls import launching

    launching.INTERPRETED_PROGRAMS = MULTIPROCESSORS


# --- tables -------------------------------------------------------------------------------------------------------


def milliseconds(case: Mapping[str, Any]) -> dict[str, float]:
    """The median of each candidate."""
    return {name: median(times) for name, times in case["cool"]["times"].items() if times}


def summary(ratios: Sequence[float], limits: Sequence[float] = (0.92, 0.93)) -> str:
    """Geometric mean, worst, and how many reach which limit."""
    if not ratios:
        return "no ratios"
    parts = [f"{sum(each >= limit for each in ratios) / len(ratios):.0%} >= {limit}" for limit in limits]
    mean = gpu_report.geometric_mean(ratios)
    return f"{len(ratios)} problems: geometric mean {mean:.3f}, {', '.join(parts)}, worst {min(ratios):.3f}"


def notes(record: Mapping[str, Any]) -> str:
    """What failed, was refused, or stopped a process."""
    lines = [f"{name}: {who}: {why}" for name, case in record["cases"].items() for who, why in case["errors"].items()]
    lines += [
        f"FAILED {check['label']}: {check['error']} {check.get('why', '')}"
        for check in record["checks"]
        if not check["ok"]
    ]
    lines += [f"stopped at {where}: {why}" for where, why in record["skipped"].items()]
    if not record.get("finished"):
        lines.append(f"not finished; {len(record['cases'])} cases are done, was at {record['running']}")
    return "\n".join(line.replace("\n", " ")[:240] for line in lines)


def rate_table(record: Mapping[str, Any]) -> str:
    """TFLOP/s of all candidates, and our speed as a part of the peer's."""
    lines: list[str] = []
    for name, case in record["cases"].items():
        rates = "  ".join(f"{who} {rate:.0f}" for who, rate in gpu_report.rates(case, "cool").items())
        found = gpu_report.ratio(case, "cool")
        shown = "-" if found is None else f"{found:.3f}"
        wanted = "" if case["target"] is None else f" (wanted {case['target']:.2f})"
        lines.append(f"{name:<44} {shown}{wanted}  {rates}  [{case['config']}]")
    return "\n".join(lines)


# --- the program --------------------------------------------------------------------------------------------------


def main(part: Part, arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark as the command line asks; return the exit status, 1 where something failed."""
    parser = argparse.ArgumentParser(
        description=sys.modules[part.family.__module__].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true", help="no GPU: small problems, made-up times")
    parser.add_argument("--only", default="", help="only problems with this in their names")
    parser.add_argument("--rounds", type=int, default=part.rounds)
    parser.add_argument("--burst", type=int, default=part.burst, help="launches of a round")
    parser.add_argument("--idle", type=float, default=part.idle_s, help="seconds before each round")
    parser.add_argument("--budget", type=float, default=part.limit_s, help="seconds for everything")
    parser.add_argument("--compile", type=int, default=0, metavar="N", help="compile ahead, in so many processes")
    parser.add_argument("--out", type=Path, help="folder for the figures, as JSON")
    parser.add_argument("--render", type=Path, metavar="FILE", help="print the table of figures of an earlier run")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.render:
        print(part.table(read(args.render)))
        return 0
    if args.family:
        sys.stdout.flush()
        os._exit(_child(part, args))  # a process with a faulted GPU context may not come to its end by itself
    deadline = time.monotonic() + args.budget
    if args.compile:
        import gemm_compile

        gemm_compile.compile_parts([part.name], args.compile, args.budget)
    scratch = Path(tempfile.mkdtemp(prefix="gemm-")) if args.out is None else args.out
    scratch.mkdir(parents=True, exist_ok=True)
    path = scratch / f"{part.name}.json"
    path.unlink(missing_ok=True)
    options = [*(["--dry"] if args.dry else []), f"--only={args.only}", f"--rounds={args.rounds}"]
    options += [f"--burst={args.burst}", f"--idle={args.idle}"]
    record = gpu_kernels.supervise(part.name, path, options, deadline, program=part.program)
    print(part.table(record), flush=True)
    if args.out is None:
        shutil.rmtree(scratch)
    return gpu_kernels.failures([record])


def read(path: Path) -> dict[str, Any]:
    """The figures in a file."""
    return json.loads(path.read_text())


def _child(part: Part, args: argparse.Namespace) -> int:
    import gpu_run
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    threading.Thread(target=_end_when_stalled, args=(args.result, part.stall_s), daemon=True).start()
    timer = (gpu_run.DryTimer if args.dry else gpu_run.GpuTimer)(args.rounds, args.burst, args.idle, 0)
    return 0 if gpu_run.run_family(part.family(args.dry), args.result, timer, args.only) else 1


def _end_when_stalled(path: Path, seconds: float) -> None:
    """End the process when nothing has been written for so long: a kernel that hangs after its first launch."""
    from measure import HUNG_EXIT_CODE

    last = time.time()
    while time.time() - last < seconds:
        time.sleep(0.5)
        if path.exists():
            last = max(last, path.stat().st_mtime)
    print(f"nothing has happened for {seconds:.0f} s", file=sys.stderr, flush=True)
    os._exit(HUNG_EXIT_CODE)
