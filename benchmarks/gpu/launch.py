"""Host time of a launch: `kernel[grid](...)` of ours and of stock Triton, and `kernel.bind(...)`, in one run.

    python benchmarks/gpu/launch.py        (needs an NVIDIA GPU, torch and Triton)

Each kernel stores one number, so that the GPU is never what is waited for. A figure is the median over batches of
launches, those of all candidates taken in turn; ratios are to stock Triton's `kernel[grid]`.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.measure import need_hopper

need_hopper(Path(__file__).name)

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import tlx_xdsl

BATCHES = 60
LAUNCHES = 100
"""Launches of a batch: well below what the driver queues before it makes the host wait."""


def one_pointer(a):
    tl.store(a + tl.program_id(0), 1.0)


def eight_pointers(a, b, c, d, e, f, g, h):
    value = tl.load(b) + tl.load(c) + tl.load(d) + tl.load(e) + tl.load(f) + tl.load(g) + tl.load(h)
    tl.store(a + tl.program_id(0), value)


def one_pointer_one_descriptor(a, x):
    tl.store(a + tl.program_id(0), tl.sum(tl.sum(x.load([0, 0]), 1), 0))


def eight_pointers_three_descriptors(a, b, c, d, e, f, g, h, x, y, z):
    value = tl.load(b) + tl.load(c) + tl.load(d) + tl.load(e) + tl.load(f) + tl.load(g) + tl.load(h)
    block = x.load([0, 0]) + y.load([0, 0]) + z.load([0, 0])
    tl.store(a + tl.program_id(0), value + tl.sum(tl.sum(block, 1), 0))


def candidates(fn: Callable[..., None], arguments: list[object]) -> dict[str, Callable[[], object]]:
    """The three ways to launch a kernel."""
    stock, ours = triton.jit(fn)[(1,)], tlx_xdsl.jit(fn)
    bound = ours.bind((1,), *arguments)
    launch = ours[(1,)]
    return {
        "stock kernel[grid]": lambda: stock(*arguments),
        "kernel[grid]": lambda: launch(*arguments),
        "bind": bound,
    }


def microseconds(launch: Callable[[], object]) -> float:
    """Host time of one launch, in a batch."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        launch()
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / LAUNCHES * 1e6


def main() -> None:
    """Print the table."""
    pointers: list[object] = [torch.ones(64, device="cuda") for _ in range(8)]
    descriptors: list[object] = [
        TensorDescriptor.from_tensor(torch.ones(128, 64, device="cuda"), [64, 32]) for _ in range(3)
    ]
    cases: list[tuple[Callable[..., None], list[object]]] = [
        (one_pointer, pointers[:1]),
        (eight_pointers, pointers),
        (one_pointer_one_descriptor, [pointers[0], descriptors[0]]),
        (eight_pointers_three_descriptors, [*pointers, *descriptors]),
    ]
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}; microseconds of host time per launch")
    for fn, arguments in cases:
        ways = candidates(fn, arguments)
        for launch in ways.values():
            microseconds(launch)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(BATCHES):
            for name, launch in ways.items():
                times[name].append(microseconds(launch))
        medians = {name: statistics.median(values) for name, values in times.items()}
        stock = medians["stock kernel[grid]"]
        row = "   ".join(f"{name} {median:6.2f} ({median / stock:.2f})" for name, median in medians.items())
        print(f"{fn.__name__:34} {row}")


if __name__ == "__main__":
    main()
