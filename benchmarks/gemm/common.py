"""Shared parts of the GEMM benchmarks: inputs, launches of one kernel or several, and tables.

A benchmark is a `Part`: a family for `gpu.run`, which checks and times each case and writes to a file after every step;
the launches whose kernels are compiled ahead, in parallel processes (`compile`), into the cache on disk; and a table.
`program.main(part)` is its command line; `report` runs several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from statistics import median
from typing import Any

from benchmarks.gemm.shapes import Shape
from benchmarks.gpu import report

OURS = report.OURS

MULTIPROCESSORS = 132
"""Of the GPU that kernels are compiled for ahead."""

DRY_MOST = 40
"""The largest size of a dry run."""


@dataclass(frozen=True)
class Part:
    """A benchmark: see the top of this file. `rounds` of `burst` launches are timed, each after `idle_s` seconds.

    `program` is its file, which `report` runs; `limit_s` are the seconds that it takes at most, `stall_s` those
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


_UNSAID = ("cluster", "columns", "part", "buffers", "group", "rows")
"""In the names of constants that follow from the problem or from the tile."""


def _described(launch: Any) -> str:
    values = dict(_constants(launch.constexprs))
    tile = "x".join(str(values.pop(name)) for name in ("block_m", "block_n", "block_k") if name in values)
    words = [launch.kernel.source.name, tile, f"grid={'x'.join(map(str, launch.grid))}"]
    for name, value in values.items():
        if value and isinstance(value, int) and not any(each in name for each in _UNSAID):
            words.append(name if value is True else f"{name}={value}")
    if launch.cluster != (1, 1, 1):
        words.append(f"cluster={'x'.join(map(str, launch.cluster))}")
    return " ".join(each for each in words if each)


def _constants(named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The constants of a launch, with those that its configurations hold."""
    for name, value in named.items():
        if is_dataclass(value):
            yield from _constants({each.name: getattr(value, each.name) for each in fields(value)})
        else:
            yield name.lower(), value


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
    mean = report.geometric_mean(ratios)
    return f"{len(ratios)} problems: geometric mean {mean:.3f}, {', '.join(parts)}, worst {min(ratios):.3f}"


def notes(record: Mapping[str, Any]) -> str:
    """List the candidates that failed or were refused, the checks that do not hold, and what stopped a process."""
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
        rates = "  ".join(f"{who} {rate:.0f}" for who, rate in report.rates(case, "cool").items())
        found = report.ratio(case, "cool")
        shown = "-" if found is None else f"{found:.3f}"
        wanted = "" if case["target"] is None else f" (wanted {case['target']:.2f})"
        lines.append(f"{name:<44} {shown}{wanted}  {rates}  [{case['config']}]")
    return "\n".join(lines)
