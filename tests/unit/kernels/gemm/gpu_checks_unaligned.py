"""Checks of products of matrices that TMA can't read, on a GPU, for tests and for measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tests.unit.kernels.gpu_checks import DTYPES, LIMITS, Check, random, relative_error
from tlx_xdsl.kernels.calls.launching import Launch, multiprocessors
from tlx_xdsl.kernels.calls.operands import Operand, operand
from tlx_xdsl.kernels.gemm.config import choose
from tlx_xdsl.kernels.gemm.dense import gemm_launch
from tlx_xdsl.kernels.gemm.model import predict
from tlx_xdsl.kernels.gemm.unaligned import copy_launch, placement, unaligned_launches, unaligned_workspace
from tlx_xdsl.kernels.gemm.unaligned_config import UnalignedPlan, plan_unaligned

SHAPES = (
    (1, 4099, 8191),
    (16, 8191, 8192),
    (17, 129, 65),
    (4104, 1048, 2056),
    (4099, 4097, 4101),
    (33, 70, 60001),
    (3000, 7, 5000),
)
"""M, N and K."""

SMALL = ((1, 1, 1), (17, 129, 65), (70, 33, 1000), (200, 8, 300), (65, 130, 2049))

ORDERS = ("rr", "rc", "cr", "cc")
"""By rows or by columns: A and B."""

PLACES = ("plain", "slice", "strided", "offset", "aligned")


def matrix(rows: int, columns: int, order: str, place: str, dtype: torch.dtype, device: str, seed: int) -> torch.Tensor:
    """A random matrix by rows ("r") or columns ("c"); what lies around it is NaN.

    `place`: plain (no padding), slice (`x[:, 1:]`), strided (`x[::2, ::3]`), offset (begins at the second element of
    its memory), aligned (rows padded to 16 bytes).
    """
    if order == "c":
        return matrix(columns, rows, "r", place, dtype, device, seed).T
    empty = {
        "plain": lambda: torch.empty(rows, columns, dtype=dtype, device=device),
        "slice": lambda: poisoned((rows, columns + 1), dtype, device)[:, 1:],
        "strided": lambda: poisoned((2 * rows, 3 * columns), dtype, device)[::2, ::3],
        "offset": lambda: poisoned((rows * columns + 1,), dtype, device)[1:].view(rows, columns),
        "aligned": lambda: poisoned((rows, -(-columns // 8) * 8), dtype, device)[:, :columns],
    }[place]()
    empty.copy_(random((rows, columns), dtype, device, seed))
    return empty


def poisoned(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """NaN everywhere."""
    return torch.full(shape, math.nan, dtype=dtype, device=device)


def operands_of(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[Operand, Operand, Operand]:
    """The tensors, looked at."""
    return operand("gemm", "a", a), operand("gemm", "b", b), operand("gemm", "out", c)


def plans(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> dict[str, UnalignedPlan]:
    """Both ways by name, each as the rule would take it, and the time that it expects."""
    left, right, target = operands_of(a, b, c)
    (m, k), n = a.shape, b.shape[1]
    processors = multiprocessors(left)
    places = placement(left), placement(right), placement(target)

    def times(offset: float) -> UnalignedPlan:
        def microseconds(m: int, n: int, k: int) -> float:
            return offset + predict(choose(m, n, k, processors), m, n, k)

        return plan_unaligned(m, n, k, *places, processors, microseconds, stores_anywhere=False)

    return {"chosen": times(0.0), "direct": times(1e9), "copies": times(-1e9)}


def launches_of(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, plan: UnalignedPlan) -> tuple[Launch, ...]:
    """The launches of a plan, with a workspace of NaN."""
    left, right, target = operands_of(a, b, c)
    workspace = torch.full((unaligned_workspace(left, right, target, plan),), 0xFF, dtype=torch.uint8, device=a.device)

    def product(left: Operand, right: Operand, target: Operand) -> Any:
        return gemm_launch(left.value, right.value, target.value).parts

    return unaligned_launches(left, right, target, plan, workspace, product)


def bound(launches: tuple[Launch, ...]) -> Callable[[], None]:
    """A function that runs launches in order."""
    each = [launch.bind() for launch in launches]

    def run() -> None:
        for launch in each:
            launch()

    return run


def check_product(
    shape: tuple[int, int, int], dtype: str, device: str, way: str, *, order: str = "rr", place: str = "plain"
) -> Check:
    """Compare a product; `way` is a name of `plans`. All of C must be written, and nothing around it."""
    m, n, k = shape
    a = matrix(m, k, order[0], place, DTYPES[dtype], device, 1)
    b = matrix(k, n, order[1], place, DTYPES[dtype], device, 2)
    c = matrix(m, n, "r", place, DTYPES[dtype], device, 3)
    c.fill_(math.nan)
    around = c if c._base is None else c._base
    before = int(around.isnan().sum())
    plan = plans(a, b, c)[way]
    bound(launches_of(a, b, c, plan))()
    label = f"gemm {m}x{n}x{k} {dtype} {order} {place} {way}: {plan.direct or sorted(plan.copies)}"
    written = before - int(around.isnan().sum())
    error = relative_error(c, a.float() @ b.float()) if written == m * n else math.nan
    return Check(label, error, LIMITS[dtype])


def all_checks(device: str, shapes: tuple[tuple[int, int, int], ...] = SMALL) -> Iterator[Check]:
    """Small products both ways, from all places and in all orders."""
    for shape in shapes:
        for way in ("direct", "copies"):
            for order in ORDERS:
                for place in PLACES:
                    yield check_product(shape, "fp16", device, way, order=order, place=place)
            yield check_product(shape, "bf16", device, way, place="slice")


def check_repeated_product(shape: tuple[int, int, int], device: str, way: str, times: int = 200) -> Check:
    """Count how many of `times` runs differ from the first one in any bit."""
    m, n, k = shape
    a = matrix(m, k, "r", "plain", torch.float16, device, 1)
    b = matrix(k, n, "r", "plain", torch.float16, device, 2)
    c = torch.empty(m, n, dtype=torch.float16, device=device)
    run = bound(launches_of(a, b, c, plans(a, b, c)[way]))
    run()
    first, differing = c.clone(), 0
    for _ in range(times):
        c.fill_(math.nan)
        run()
        differing += int(not torch.equal(c, first))
    return Check(f"gemm {m}x{n}x{k} {way}, runs of {times} that differ", differing, 1)


@dataclass(frozen=True)
class Copies:
    """A copy of rows that are not aligned to rows that are, one back, and the bytes that each moves at least."""

    source: torch.Tensor
    target: torch.Tensor
    there: Callable[[], None]
    back: Callable[[], None]
    moved: int


def copies(rows: int, columns: int, device: str) -> Copies:
    """Copies of a matrix of 16-bit elements."""
    source = matrix(rows, columns, "r", "slice", torch.float16, device, 1)
    target = poisoned((rows, -(-columns // 8) * 8), torch.float16, device)
    first, second = operand("copy", "x", source), operand("copy", "y", target)
    there, back = bound((copy_launch(first, second),)), bound((copy_launch(second, first),))
    return Copies(source, target, there, back, 4 * rows * columns)


def check_copies(rows: int, columns: int, device: str) -> Check:
    """Count the elements that differ after a copy there and back, and those that are not zero in the padding."""
    each = copies(rows, columns, device)
    before = each.source.clone()
    each.there()
    each.source.fill_(math.nan)
    each.back()
    wrong = int((each.source != before).sum() + (each.target[:, columns:] != 0).sum())
    return Check(f"copies of {rows}x{columns}", wrong, 1)
