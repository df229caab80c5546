"""Checks of attention's gradients on a GPU, against float64, for tests and for the benchmark (`gpu_checks`).

What is compared beside is the same formula with sums in f32 and all that a kernel rounds rounded to the 16-bit type:
probabilities, dS, O and the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

import torch

from tests.unit.kernels.gpu_checks import (
    DTYPES,
    LIMITS,
    AttentionShape,
    Check,
    attention_inputs,
    check_repeated,
    poisoned,
    random,
)
from tlx_xdsl.backend.client import default_limit
from tlx_xdsl.kernels.attention.backward.call import attention_backward_launch
from tlx_xdsl.kernels.attention.forward import attention_launch

NAMES = ("dq", "dk", "dv")

ROWS = 1024
"""Rows of scores at a time: those of 16,384 keys in f64 take 128 MiB."""

CANCELLED_LIMIT = 0.02
"""Largest element where the exact gradient is zero: of a single key dP and delta are equal, up to roundings."""

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def gradients_of_head(q, k, v, dout, scale: float, causal: bool, *, rounded: bool = False) -> Gradients:
    """dQ, dK and dV of one head of keys, (keys, dim), and its heads of queries, (heads, queries, dim).

    In float64, or with sums in f32 and roundings to the type of the inputs.
    """
    kind, dtype = (torch.float32 if rounded else torch.float64), q.dtype

    def kept(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype).to(kind) if rounded else x

    heads, queries, _ = q.shape
    k, v = k.to(kind), v.to(kind)
    keys = torch.arange(k.shape[0], device=k.device)
    dq, dk, dv = torch.empty(q.shape, dtype=kind, device=q.device), torch.zeros_like(k), torch.zeros_like(v)
    for head in range(heads):
        for first in range(0, queries, ROWS):
            rows, do = (x[head, first : first + ROWS].to(kind) for x in (q, dout))
            scores = rows @ k.T * scale
            if causal:
                places = first + torch.arange(rows.shape[0], device=q.device)
                scores.masked_fill_(keys[None, :] > places[:, None], -math.inf)
            p = scores.softmax(-1)
            delta = (do * kept(kept(p) @ v)).sum(-1, keepdim=True)
            ds = kept(p * (do @ v.T - delta))
            dq[head, first : first + ROWS] = kept(ds @ k * scale)
            dk += ds.T @ rows * scale
            dv += kept(p).T @ do
    return dq, kept(dk), kept(dv)


class Problem:
    """Arrays of the backward pass's launches: inputs, the forward pass's results, gradients that are NaN."""

    def __init__(self, shape: AttentionShape, dtype: str, device: str, causal: bool):
        self.shape, self.causal, self.scale = shape, causal, shape.dim**-0.5
        self.q, self.k, self.v = attention_inputs(shape, dtype, device)
        self.dout = random(shape.out, DTYPES[dtype], device, 3)
        self.out, self.lse = poisoned(shape.out, self.q.dtype, device), self.q.new_empty(self.q.shape[:3]).float()
        self.forward = attention_launch(self.q, self.k, self.v, self.out, self.lse, causal=causal).bind()
        self.grads = [poisoned(each.shape, each.dtype, device) for each in (self.q, self.k, self.v)]
        self.limit = LIMITS[dtype]
        self.label = f"attention backward {shape} {dtype}{' causal' if causal else ''}"

    def launch(self, *, deterministic: bool = False, grads: list[torch.Tensor] | None = None) -> Callable[[], Any]:
        """The backward pass, bound."""
        given = (self.q, self.k, self.v, self.out, self.lse, self.dout, *(grads or self.grads))
        return attention_backward_launch(*given, causal=self.causal, deterministic=deterministic).bind()

    def head(self, at: int) -> tuple[torch.Tensor, ...]:
        """Q, K, V and dO of a head of keys, counted over all batches."""
        batch, head = divmod(at, self.shape.kv_heads)
        group = self.shape.heads // self.shape.kv_heads
        those = slice(head * group, (head + 1) * group)
        return self.q[batch, those], self.k[batch, head], self.v[batch, head], self.dout[batch, those]

    def compare(self, at: int, *, grads: list[torch.Tensor] | None = None, factor: float = 0.0) -> list[Check]:
        """Checks of dQ, dK and dV of a head of keys; with a `factor` errors are so many times the rounded formula's."""
        batch, head = divmod(at, self.shape.kv_heads)
        group = self.shape.heads // self.shape.kv_heads
        dq, dk, dv = grads or self.grads
        found = dq[batch, head * group : (head + 1) * group], dk[batch, head], dv[batch, head]
        exact = gradients_of_head(*self.head(at), self.scale, self.causal)
        beside = gradients_of_head(*self.head(at), self.scale, self.causal, rounded=True) if factor else exact
        checks: list[Check] = []
        for name, ours, wanted, theirs in zip(NAMES, found, exact, beside, strict=True):
            label = f"{self.label}, head {at}, {name}"
            if wanted.abs().max() < 1e-9:
                checks.append(Check(label, ours.abs().max().item(), CANCELLED_LIMIT))
                continue
            limit = factor * error(theirs, wanted) if factor else self.limit
            checks.append(Check(label, error(ours, wanted), limit))
        return checks

    def unwritten(self) -> Check:
        """Count the elements that are NaN."""
        return Check(f"{self.label}, elements not written", sum(int(x.isnan().sum()) for x in self.grads), 1)


def compile_ahead(problems: Iterable[tuple[AttentionShape, str, bool]], device: str) -> None:
    """Compile what these problems (shape, type, causal) launch, in as many processes as there are cores.

    Threads would share one interpreter: on 16 cores they took eight times as long.
    """
    work = [(*problem, device) for problem in problems]
    with get_context("spawn").Pool(min(len(work), default_limit())) as processes:
        processes.starmap(_compile, work, chunksize=1)


def _compile(shape: AttentionShape, dtype: str, causal: bool, device: str) -> None:
    # What fails here fails again where it is launched, and is reported there.
    with suppress(Exception):
        made = Problem(shape, dtype, device, causal)
        for deterministic in (False, True):
            made.launch(deterministic=deterministic)


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference over that of `expected`, in float64."""
    return ((found.double() - expected.double()).norm() / expected.double().norm()).item()


def check_backward(
    shape: AttentionShape,
    dtype: str,
    device: str,
    *,
    causal: bool,
    deterministic: bool = False,
    factor: float = 0.0,
    run: Callable[[Callable[[], Any], str], None],
) -> Iterator[Check]:
    """Compare the first and the last head of keys; all must be written. `run` makes the launches."""
    problem = Problem(shape, dtype, device, causal)
    run(problem.forward, f"{problem.label}, forward")
    run(problem.launch(deterministic=deterministic), f"{problem.label}{' deterministic' if deterministic else ''}")
    yield problem.unwritten()
    for at in sorted({0, shape.batch * shape.kv_heads - 1}):
        yield from problem.compare(at, factor=factor)


def repeated_backward(shape: AttentionShape, dtype: str, device: str, *, causal: bool, times: int = 200) -> Check:
    """`check_repeated` of the deterministic gradients."""
    problem = Problem(shape, dtype, device, causal)
    problem.forward()
    return check_repeated(problem.launch(deterministic=True), problem.grads, f"{problem.label} deterministic", times)
