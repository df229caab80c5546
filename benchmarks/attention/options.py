"""Attention's options and sequences of many lengths, in bf16: ours beside ours without them, and beside torch's.

    python benchmarks/attention/options.py varlen|window|scores|all [--rounds 4] [--dry]          (needs a Hopper GPU)

TFLOP/s count the keys that queries see, and no others. Everything is compiled first, as many at once as there are
cores, then what has a rival or a plain kernel of the same meaning is compared with it, then all is timed in turns, cool
(`measure`). torch's are FlashAttention (`varlen`, `window`) and a compiled `flex_attention` (`scores`). With `--dry`
everything of ours runs once, in the interpreter.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

import tlx_xdsl
import tlx_xdsl.language as tl
from benchmarks.gpu import measure
from benchmarks.gpu.run import DryTimer, GpuTimer
from tests.unit.kernels.gpu_checks import poisoned, random, relative_error
from tlx_xdsl.backend.client import default_limit
from tlx_xdsl.kernels.attention.forward import attention_launch
from tlx_xdsl.kernels.attention.varlen import attention_varlen_launch

LIMIT = 1e-2
"""Norm of the difference of two results, in bf16, over that of one."""

Launch = Callable[[], Any]


@tlx_xdsl.jit
def alibi(score, batch, head, query, key, slopes):  # pyright: ignore
    """A bias for the distance."""
    return score + tl.load(slopes + head) * (key - query)  # pyright: ignore


@dataclass
class Case:
    """Launches by name, made when they are asked for, with the flops of each, and the results that must be alike."""

    label: str
    makers: dict[str, tuple[Callable[[], Launch], float]] = field(default_factory=dict)
    outs: dict[str, Callable[[], torch.Tensor]] = field(default_factory=dict)

    def add(self, name: str, flops: float, make: Callable[[], Launch], out: Callable[[], torch.Tensor] | None) -> None:
        """Add a candidate; `out` gives its result after a launch."""
        self.makers[name] = make, flops
        if out is not None:
            self.outs[name] = out


def seen_pairs(queries: int, keys: int, causal: bool, window: tuple[int | None, int | None]) -> int:
    """Pairs of queries and keys that see each other."""
    left, right = window
    right = 0 if causal else right
    row = torch.arange(queries)
    first = torch.zeros_like(row) if left is None else (row - left).clamp(0, keys)
    last = torch.full_like(row, keys) if right is None else (row + right + 1).clamp(0, keys)
    return int((last - first).clamp(0).sum())


def rows_of(lengths: list[int], heads: int, dim: int, device: str) -> list[torch.Tensor]:
    """Q, K and V of sequences."""
    return [random((sum(lengths), heads, dim), torch.bfloat16, device, seed) for seed in range(3)]


def flash(q: Any, k: Any, v: Any, sums: Any, length: int, causal: bool, window: tuple[Any, Any] = (None, None)) -> Any:
    """FlashAttention of torch, of (batch, rows, heads, dim) or sequences: the output."""
    return torch.ops.aten._flash_attention_forward(
        q, k, v, sums, sums, length, length, 0.0, causal, False,
        window_size_left=window[0], window_size_right=0 if causal and window[0] is not None else window[1],
    )[0]  # fmt: skip


class Kept:
    """A launch of torch's, with what it gave last."""

    def __init__(self, run: Callable[[], torch.Tensor]):
        self.run, self.out = run, torch.empty(0)

    def __call__(self) -> None:
        """Run it."""
        self.out = self.run()


def varlen_case(name: str, lengths: list[int], heads: int, dim: int, causal: bool, device: str) -> Case:
    """Sequences; of equal lengths beside batches."""
    case = Case(f"varlen, {name}, {heads} heads of {dim}{' causal' if causal else ''}")
    q, k, v = rows_of(lengths, heads, dim, device)
    sums = torch.tensor([0, *lengths], device=device).cumsum(0, dtype=torch.int32)
    pairs = sum(seen_pairs(each, each, causal, (None, None)) for each in lengths)
    flops = 4 * dim * heads * pairs
    out = poisoned(q.shape, q.dtype, device)
    lse = torch.empty((heads, len(q)), device=device)
    case.add(
        "ours", flops, lambda: attention_varlen_launch(q, k, v, sums, sums, out, lse, causal=causal).bind(), lambda: out
    )
    if len(set(lengths)) == 1:
        padded = [each.view(len(lengths), -1, heads, dim).transpose(1, 2) for each in (q, k, v)]
        batches = poisoned((len(lengths), lengths[0], heads, dim), q.dtype, device)
        sums_of_rows = torch.empty((len(lengths), heads, lengths[0]), device=device)
        case.add(
            "ours, batches", flops,
            lambda: attention_launch(*padded, batches.transpose(1, 2), sums_of_rows, causal=causal).bind(),
            lambda: batches.view(out.shape),
        )  # fmt: skip
    if device != "cpu":
        rival = Kept(lambda: flash(q, k, v, sums, max(lengths), causal))
        case.add("FlashAttention", flops, lambda: rival, lambda: rival.out)
    return case


def varlen_cases(device: str) -> Iterator[Case]:
    """Equal lengths, and lengths as of documents."""
    if device == "cpu":
        yield varlen_case("2 x 70", [70] * 2, 1, 64, True, device)
        return
    skewed = [8192, 300, 1000, 2500, 60, 4000, 128, 3000, 700, 12000, 90, 798]
    for dim in (128, 64):
        for causal in (False, True):
            yield varlen_case("4 x 4096", [4096] * 4, 16, dim, causal, device)
            yield varlen_case(f"{len(skewed)} of 60 to 12000", skewed, 16, dim, causal, device)


def options_case(
    label: str, shape: tuple[int, int, int, int], device: str, *, causal: bool = True, window: Any = None, rival: Any,
    **options: Any,
) -> Case:  # fmt: skip
    """A call with options, and the same without; `rival` makes torch's of q, k and v, (batch, rows, heads, dim)."""
    batch, heads, length, dim = shape
    case = Case(f"{label}, {batch}x{heads}x{length} D{dim}{' causal' if causal else ''}")
    q, k, v = (random((batch, length, heads, dim), torch.bfloat16, device, seed) for seed in range(3))
    turned = [each.transpose(1, 2) for each in (q, k, v)]
    lse = torch.empty((batch, heads, length), device=device)

    def ours(given: dict[str, Any]) -> tuple[Callable[[], Launch], Callable[[], torch.Tensor]]:
        out = poisoned(q.shape, q.dtype, device)
        return (
            lambda: attention_launch(*turned, out.transpose(1, 2), lse, causal=causal, **given).bind(),
            lambda: out,
        )

    for name, given in (("ours", {"window": window, **options}), ("ours, plain", {})):
        limits = window if name == "ours" and window else (None, None)
        make, out = ours(given)
        flops = 4 * dim * batch * heads * seen_pairs(length, length, causal, limits)
        case.add(name, flops, make, out if name == "ours" else None)
    if rival is not None and device != "cpu":
        kept = Kept(lambda: rival(q, k, v))
        flops = 4 * dim * batch * heads * seen_pairs(length, length, causal, window or (None, None))
        case.add("torch", flops, lambda: kept, lambda: kept.out)
    return case


def window_cases(device: str) -> Iterator[Case]:
    """Windows after a causal mask, and on both sides."""
    shapes = [(1, 1, 70, 64)] if device == "cpu" else [(2, 16, 16384, 128), (2, 16, 16384, 64)]
    for shape in shapes:
        for causal, window in ((True, (1024, 0)), (True, (4096, 0)), (False, (512, 512))):

            def rival(q: Any, k: Any, v: Any, causal: bool = causal, window: Any = window) -> torch.Tensor:
                return flash(q, k, v, None, q.shape[1], causal, window)

            yield options_case(f"window {window}", shape, device, causal=causal, window=window, rival=rival)


def flex(score_mod: Any) -> Any:
    """A compiled `flex_attention` with a causal mask."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    compiled = torch.compile(flex_attention, dynamic=False)
    masks: dict[int, Any] = {}

    def run(q: Any, k: Any, v: Any) -> torch.Tensor:
        length = q.shape[1]
        if length not in masks:
            masks[length] = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length)
        turned = (each.transpose(1, 2) for each in (q, k, v))
        return compiled(*turned, score_mod=score_mod, block_mask=masks[length]).transpose(1, 2)

    return run


def scores_cases(device: str) -> Iterator[Case]:
    """Caps, sinks, and a bias by a function."""
    shapes = [(1, 1, 70, 64)] if device == "cpu" else [(4, 16, 4096, 128), (4, 16, 4096, 64)]
    slopes = torch.linspace(-1, -0.1, shapes[0][1], device=device)
    for shape in shapes:
        cap = flex(lambda score, b, h, i, j: 20 * torch.tanh(score / 20)) if device != "cpu" else None
        bias = flex(lambda score, b, h, i, j: score + slopes[h] * (j - i)) if device != "cpu" else None
        yield options_case("softcap", shape, device, softcap=20.0, rival=cap)
        yield options_case("sinks", shape, device, sinks=slopes, rival=None)
        yield options_case("bias", shape, device, score_mod=alibi, score_args=(slopes,), rival=bias)


FAMILIES = {"varlen": varlen_cases, "window": window_cases, "scores": scores_cases}


def measured(case: Case, launches: dict[str, Launch], timer: Any) -> Iterator[str]:
    """Lines with the rates of what works."""
    working: dict[str, Launch] = {}
    for name, launch in launches.items():
        try:
            timer.first(launch, f"{case.label}: {name}")
            working[name] = launch
        except (RuntimeError, TypeError) as error:
            yield f"    {name:<16} {str(error).splitlines()[0][:90]}"
    for name in [each for each in working if each != "ours" and each in case.outs]:
        error = relative_error(case.outs["ours"](), case.outs[name]())
        if not error < LIMIT:
            yield f"    {name:<16} DIFFERS from ours: {error:.1e}"
    times = timer.cool(working)["times"]
    for name, each in times.items():
        ratios = [other / ours for other, ours in zip(each, times["ours"], strict=False)]
        median = measure.median(each)
        rate = case.makers[name][1] / median / 1e9
        yield f"    {name:<16} {median:8.3f} ms {rate:6.0f} {measure.median(ratios):6.3f}"


def main() -> None:
    """Compile, compare, time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=[*FAMILIES, "all"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    device = "cpu" if options.dry else "cuda"
    timer = DryTimer(options.rounds) if options.dry else GpuTimer(options.rounds, idle_s=0.05, hot_rounds=0)
    families = FAMILIES if options.family == "all" else {options.family: FAMILIES[options.family]}
    with ThreadPoolExecutor(default_limit()) as threads:
        cases = [case for family in families.values() for case in family(device)]
        made = [{name: threads.submit(make) for name, (make, _) in case.makers.items()} for case in cases]
        for case, found in zip(cases, made, strict=True):
            print(f"{case.label}: ms, TFLOP/s, time of ours'", flush=True)
            for line in measured(case, {name: each.result() for name, each in found.items()}, timer):
                print(line, flush=True)


if __name__ == "__main__":
    main()
