"""Cross-entropy of a linear layer beside torch, eager and compiled, Liger and QuACK: time, memory, error.

    python benchmarks/gpu/linear_cross_entropy.py [FILE]       (needs a Hopper GPU and torch)
    python -m benchmarks.gpu.dashboard --add FILE              (takes FILE into docs/figures.json)

8192 rows of 4096 elements, 128256 classes, bf16. Memory is the most that torch's allocator hands out during a step, its
gradients included. The error is the norm of the difference to a float32 gradient over its norm.
"""

import datetime
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.measure import cool_rounds, hot_rounds, need_hopper, relative_error

need_hopper(Path(__file__).name)

import torch
from torch.nn.functional import cross_entropy, linear

from benchmarks.gpu.nvml import Gpu
from benchmarks.gpu.run import machine
from tlx_xdsl.kernels.linear_cross_entropy import linear_cross_entropy

ROWS, DEPTH, CLASSES = 8192, 4096, 128256
CHUNK, PART = 1024, 4096
"""Rows of the reference that are computed at a time, and rows of the gradient of `w` that are compared."""

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

OURS: dict[str, dict[str, Any]] = {
    "ours": {}, "ours, sums in bf16": {"sum_dtype": "bf16"}, "ours, 4096 rows": {"logits_bytes": 1100 << 20},
}  # fmt: skip


def torchs(x: torch.Tensor, w: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Torch's two calls."""
    return cross_entropy(linear(x, w), target)


def losses() -> dict[str, Loss]:
    """All candidates that are installed."""
    found: dict[str, Loss] = {
        name: lambda x, w, target, options=options: linear_cross_entropy(x, w, target, **options)
        for name, options in OURS.items()
    }
    found |= {"torch": torchs, "torch.compile": torch.compile(torchs)}
    try:
        from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy as liger

        found["Liger"] = lambda x, w, target: liger(x, w, target)[0]
    except Exception as error:  # what a version does not fit is said, and left out
        print(f"no Liger: {error!r}"[:300])
    try:
        from quack.linear_cross_entropy import chunked_linear_cross_entropy

        found["QuACK"] = chunked_linear_cross_entropy
    except Exception as error:  # likewise: it compiles while it is imported
        print(f"no QuACK: {error!r}"[:300])
    return found


def expected(x: torch.Tensor, w: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of the first CHUNK rows of x and of the first PART rows of w, in float32."""
    count, of_x, of_w = (target >= 0).sum(), torch.empty(0), torch.zeros(PART, DEPTH, device="cuda")
    for first in range(0, ROWS, CHUNK):
        rows, classes = x[first : first + CHUNK].float(), target[first : first + CHUNK]
        grad = torch.softmax(rows @ w.float().t(), 1)
        grad[torch.arange(CHUNK, device="cuda"), classes.clamp(min=0)] -= 1
        grad *= (classes >= 0)[:, None] / count
        of_x = of_x if first else grad @ w.float()
        of_w += grad[:, :PART].t() @ rows
    return of_x, of_w


def main() -> None:
    """Measure, print, and write the record to the file that is named."""
    random = torch.Generator("cuda").manual_seed(0)
    x = torch.randn((ROWS, DEPTH), device="cuda", generator=random).bfloat16()
    w = (torch.randn((CLASSES, DEPTH), device="cuda", generator=random) * 2 * DEPTH**-0.5).bfloat16()
    target = torch.randint(0, CLASSES, (ROWS,), device="cuda", generator=random)
    target[::17] = -100
    of_x, of_w = expected(x, w, target)
    x.requires_grad_()
    w.requires_grad_()

    def step(loss: Loss) -> None:
        x.grad = w.grad = None
        loss(x, w, target).backward()

    def forward(loss: Loss) -> None:
        with torch.no_grad():
            loss(x, w, target)

    gpu, clocks, cases = Gpu(torch.cuda.current_device()), list[int | None](), list[dict[str, Any]]()
    for what, run in (("forward and both gradients", step), ("forward alone", forward)):
        candidates = {name: lambda loss=loss, run=run: run(loss) for name, loss in losses().items()}
        memory: dict[str, int] = {}
        for name, launch in candidates.items():
            launch()
            x.grad = w.grad = None
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            launch()
            memory[name] = (torch.cuda.max_memory_allocated() - before) >> 20
            if x.grad is not None and w.grad is not None:
                errors = relative_error(x.grad[:CHUNK], of_x), relative_error(w.grad[:PART], of_w)
                print(f"{name}: errors {errors[0]:.5f} {errors[1]:.5f}")
        cool = cool_rounds(candidates, burst=2, after_burst=lambda: clocks.append(gpu.clock_mhz()))
        hot = hot_rounds(candidates)
        times = {name: round(statistics.median(each), 2) for name, each in cool.items()}
        for name, each in times.items():
            print(f"{what}: {name}: {each} ms, sustained {statistics.median(hot[name]):.2f} ms, {memory[name]} MiB")
        peers = {name: each for name, each in times.items() if name not in OURS}
        for name in OURS:
            ratio = round(min(peers.values()) / times[name], 3)
            case = {"problem": f"{what}{name.removeprefix('ours')}", "ours": times[name], "peers": peers}
            cases.append({**case, "beside": ", ".join(peers), "ratio": ratio})
    found, known = machine(), [each for each in clocks if each is not None]
    record = {
        "family": "linear-cross-entropy", "title": "linear_cross_entropy, bf16",
        "unit": f"ms ({ROWS} x {DEPTH}, {CLASSES} classes)", "card": found["device"],
        "date": datetime.date.today().isoformat(), "clock": f"{min(known)} to {max(known)} MHz" if known else None,
        **{each: found[each] for each in ("commit", "driver", "ptxas")},
        "versions": {each: found[each] for each in ("torch", "triton", "cuda")}, "cases": cases,
    }  # fmt: skip
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps([record], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
