"""Sums over ranks and gathering: `all_reduce(x, ranks)`, `reduce_scatter(x, ranks)`, `all_gather(x, ranks)`.

bf16, fp16 and fp32, contiguous. What travels has the type of x; sums are in f32 in the order of ranks, rounded once,
and have the same bits on each run and each rank. The kernels and what they rest on are in `reduce`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

from tlx_xdsl.runtime.ranks.engine import Ranks

from ..calls.launching import multiprocessors
from ..calls.operands import Operand, check_contiguous, check_types, is_aligned
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import comm as operators
from . import reduce
from .launches import call, here, launch_on, memory, operands_of, pads_of, results

kernels: Any = reduce

DTYPES = ("bf16", "fp16", "fp32")

Algorithm = Literal["one_shot", "two_shot"]

RATE = 363e9
"""Bytes a second that a GPU reads from others, or stores to them: a copy on H200s with NVLink, 2026-11-28."""

ROUND, ROUND_OF_RANK = 2.6e-6, 0.4e-6
"""Seconds that a second round of signals takes, and more of them for each rank.

Of 32 KiB, two shots less one took 3.8e-6 on two H200s and 6.6e-6 on four, 2026-11-30. Since programs wait for one
counter, four ranks on one GPU have a difference of 2.3e-6 instead of 3.9e-6, 2026-12-01; four GPUs were not measured.
"""

MOST_ONE_SHOT = 8 << 20
"""Bytes of the largest sum in one shot, for which each rank keeps 2 * world times that."""

_WARPS = 8
_VECTOR = 16
"""Bytes that a thread loads or stores at a time."""

_MORE_VECTORS = 4
"""What a thread has in flight of a long tensor; of a short one it has 1, so that more programs share it."""

_UNIT = 128
"""Elements of which parts are multiples, so that each begins at a line of the cache."""


def all_reduce(x: Any, ranks: Ranks, out: Any = None, *, algorithm: Algorithm | None = None) -> Any:
    """Return the sum over all ranks of x, on each rank. `out` may be x. `algorithm` replaces the choice by size.

    Memory on each rank: 2 * world * x bytes in one shot; in two, x and x / world.

    Raises TypeError for other types than bf16, fp16 and fp32, ValueError for tensors that are not contiguous.
    """
    return call(ALL_REDUCE, ranks, (x, out), (algorithm,))


def reduce_scatter(x: Any, ranks: Ranks, out: Any = None) -> Any:
    """Return part r of the sum over all ranks of x on rank r: x is divided along its first dimension.

    Memory on each rank: 2 * x bytes. Raises as `all_reduce`, and ValueError where the ranks don't divide the dimension.
    """
    return call(REDUCE_SCATTER, ranks, (x, out), ())


def all_gather(x: Any, ranks: Ranks, out: Any = None) -> Any:
    """Return x of rank 0, of rank 1, ..., along the first dimension. Memory on each rank: 2 * x bytes.

    Raises as `all_reduce`.
    """
    return call(ALL_GATHER, ranks, (x, out), ())


def chosen(bytes_: int, world: int) -> Algorithm:
    """The algorithm that should be done first.

    One shot stores world - 1 times the bytes; two shots store and load 2 (world - 1) / world of them, in two rounds.
    Two ranks have the same bytes either way.

    >>> chosen(1 << 16, 4), chosen(1 << 24, 4)
    ('one_shot', 'two_shot')
    """
    more = (world - 1) * (1 - 2 / world) * bytes_
    return "one_shot" if more / RATE < ROUND + ROUND_OF_RANK * world and bytes_ <= MOST_ONE_SHOT else "two_shot"


def _prepare_all_reduce(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    ranks, algorithm = options
    given = _given("all_reduce", tensors[0], ranks)
    out = results(given, tensors[1], ranks, given[0].shape)
    check_contiguous(out[0])
    found = {"x": tensors[0], "out": here(ranks, [each.value for each in out])}
    count, world = prod(given[0].shape), ranks.world_size
    if not count:
        return Prepared(found)
    algorithm = algorithm or chosen(count * given[0].element_bytes, world)
    if algorithm == "one_shot":
        return Prepared(found, (_launch(kernels.all_reduce_one_shot, ranks, given, out, count, _rounded(count)),))
    if algorithm != "two_shot":
        raise ValueError(
            f"all_reduce: argument 'algorithm': expected 'one_shot', 'two_shot' or None, got {algorithm!r}"
        )
    return Prepared(
        found, (_launch(kernels.all_reduce_two_shot, ranks, given, out, count, _rounded(-(-count // world))),)
    )


def _prepare_reduce_scatter(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    (ranks,) = options
    given = _given("reduce_scatter", tensors[0], ranks)
    rows, *rest = given[0].shape or (1,)
    if rows % ranks.world_size:
        raise ValueError(
            f"{given[0].what}: expected a multiple of {ranks.world_size} rows, one part for each rank, got {rows}"
        )
    out = results(given, tensors[1], ranks, (rows // ranks.world_size, *rest))
    check_contiguous(out[0])
    found = {"x": tensors[0], "out": here(ranks, [each.value for each in out])}
    part = prod(out[0].shape)
    if not part:
        return Prepared(found)
    return Prepared(found, (_launch(kernels.reduce_scatter, ranks, given, out, part * ranks.world_size, part),))


def _prepare_all_gather(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    (ranks,) = options
    given = _given("all_gather", tensors[0], ranks)
    rows, *rest = given[0].shape or (1,)
    out = results(given, tensors[1], ranks, (rows * ranks.world_size, *rest))
    check_contiguous(out[0])
    found = {"x": tensors[0], "out": here(ranks, [each.value for each in out])}
    part = prod(given[0].shape)
    return Prepared(found, (gather_launch(ranks, given, out, part),) if part else ())


ALL_REDUCE = PlannedFunction("all_reduce", _prepare_all_reduce, results=1, operator=operators.ALL_REDUCE)
REDUCE_SCATTER = PlannedFunction(
    "reduce_scatter", _prepare_reduce_scatter, results=1, operator=operators.REDUCE_SCATTER
)
ALL_GATHER = PlannedFunction("all_gather", _prepare_all_gather, results=1, operator=operators.ALL_GATHER)


def _given(function: str, x: Any, ranks: Ranks) -> list[Operand]:
    if ranks.world_size < 2:
        raise ValueError(f"{function}: argument 'ranks': expected at least 2 ranks, got {ranks.world_size}")
    given = operands_of(ranks, function, "x", x)
    check_types(given, DTYPES)
    check_contiguous(given[0])
    return given


def _rounded(count: int) -> int:
    return -(-count // _UNIT) * _UNIT


def gather_launch(ranks: Ranks, given: Sequence[Operand], out: Sequence[Operand], part: int) -> Any:
    """The launch of `all_gather` of `part` elements of each rank."""
    length = _rounded(part)
    block, programs = _division(given[0], part)
    dtype, world = given[0].value.dtype, ranks.world_size

    def source_of(signal: int) -> int:
        return signal // programs % world

    def make() -> Any:
        return ranks.allocate(2 * length, dtype), pads_of(ranks, "all_gather", world * programs, source_of)

    staging, pads = memory(ranks, ("all_gather", part, str(dtype)), make)
    return launch_on(
        ranks, kernels.all_gather, programs, {"x": given, "out": out},
        {"staging": staging, "pads": pads, "part": part, "length": length}, {"BLOCK": block}, given[0],
        aligned=_aligned(given, out, {"part": part, "length": length}), num_warps=_WARPS,
    )  # fmt: skip


def _launch(kernel: Any, ranks: Ranks, given: Sequence[Operand], out: Sequence[Operand], count: int, part: int) -> Any:
    """The launch of a sum of `count` elements; `part` are those that a rank receives of each other one."""
    world, dtype = ranks.world_size, given[0].value.dtype
    one_shot = kernel is kernels.all_reduce_one_shot
    two_shot = kernel is kernels.all_reduce_two_shot
    block, programs = _division(given[0], part)

    def source_of(signal: int) -> int:
        return signal // programs % world

    def make() -> dict[str, Any]:
        made = {"staging": ranks.allocate((1 if two_shot else 2) * world * part, dtype)}
        if two_shot:
            made["sums"] = ranks.allocate(part, dtype)
        made["pads"] = pads_of(ranks, kernel.source.name, 2 * world * programs, source_of)
        return made

    shared = memory(ranks, (kernel.source.name, count, str(dtype)), make)
    numbers = {"n": count, "length" if one_shot else "part": part}
    return launch_on(
        ranks, kernel, programs, {"x": given, "out": out}, {**shared, **numbers}, {"BLOCK": block}, given[0],
        aligned=_aligned(given, out, numbers), num_warps=_WARPS,
    )  # fmt: skip


def _division(each: Operand, count: int) -> tuple[int, int]:
    """Elements of a block, and programs: at most one for each multiprocessor, so that all are resident."""
    processors = multiprocessors(each)
    block = _WARPS * 32 * _VECTOR // each.element_bytes
    if count > processors * block * _MORE_VECTORS:
        block *= _MORE_VECTORS
    return block, min(-(-count // block), processors)


def _aligned(given: Sequence[Operand], out: Sequence[Operand], numbers: dict[str, int]) -> tuple[str, ...]:
    """The arguments that are multiples of 16, so that 16 bytes move at a time."""
    tensors = [name for name, each in (("x", given[0]), ("out", out[0])) if is_aligned(each)]
    return (*tensors, *(name for name, value in numbers.items() if value % 16 == 0))
