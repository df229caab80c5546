"""Time the first launch of a kernel in a process that finds it in the cache: ours against stock Triton's.

    python benchmarks/compile/cached_launch.py

Processes of both take turns; each imports Triton (and torch, where there is a GPU), then measures its first
`kernel[grid](...)` up to the result. Without a GPU it measures `kernel.warmup(...)`, which is what the compiler has a
part in. Prints the medians and their ratio.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import triton
import triton.language as tl

import tlx_xdsl
from tlx_xdsl import runtime


@triton.jit
def stock_add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(z + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


our_add = tlx_xdsl.jit(stock_add.fn)


class OnTheHost:
    """Looks like a tensor to Triton's `warmup`."""

    dtype = "torch.float32"

    def data_ptr(self) -> int:
        return 4096


def first_launch(kernel) -> float:
    """Milliseconds of the first launch in this process."""
    if runtime.available():
        import torch

        x, y, z = (torch.ones(4096, device="cuda") for _ in range(3))
        torch.cuda.synchronize()
        start = time.perf_counter()
        kernel[(16,)](x, y, z, 4096, BLOCK=256)
        torch.cuda.synchronize()
        assert z.eq(2.0).all()
    else:
        from tlx_xdsl.runtime.jit.stand_in_driver import assume_target

        with assume_target("sm_90a"):
            start = time.perf_counter()
            kernel.warmup(*(OnTheHost() for _ in range(3)), 4096, BLOCK=256, grid=(16,))
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    """Run the processes, or be one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--be", choices=("stock", "ours"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.be:
        print(first_launch(stock_add if arguments.be == "stock" else our_add))
        return
    times: dict[str, list[float]] = {"stock": [], "ours": []}
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_CACHE_DIR": cache, "TRITON_DEFAULT_FP_FUSION": "1"}
        for index in range(arguments.rounds + 1):
            for who, found in times.items():
                command = [sys.executable, __file__, "--be", who]
                out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
                # The first of each fills the cache.
                if index:
                    found.append(float(out.split()[-1]))
    stock, ours = (statistics.median(found) for found in times.values())
    what = "kernel[grid] to the result" if runtime.available() else "warmup (no GPU here)"
    print(f"first launch from the cache, Triton {triton.__version__}, {what}, medians of {arguments.rounds} processes:")
    print(f"stock {stock:.1f} ms, ours {ours:.1f} ms, ratio {ours / stock:.2f}")


if __name__ == "__main__":
    main()
