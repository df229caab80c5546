"""Tune a plain-Triton GEMM over 48 configurations, by Triton's autotuner and by ours, each with nothing in its cache.

    python benchmarks/gpu/autotune.py [--size 4096] [--json FILE]      (on a GPU, with torch)
    python benchmarks/gpu/autotune.py --dry --configs 4                (anywhere: compiles, pretends to launch)

Each search runs in a process of its own. A first process of each kind, which is not counted, leaves the files of both
libraries in memory. Then: ours, Triton's, ours again, what a second process does with what ours has stored, and ours
where the model leaves twelve to measure. The
time of a search is that of the first launch, from the call to the end of the kernel; that of the process contains
imports and the operands. Ours compares every configuration with torch's product as well.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import triton
import triton.language as tl

CORES_AT_START = len(os.sched_getaffinity(0))
"""Before torch is imported, which may bind its threads to cores."""

WANTED = 0.6
"""The largest ratio of our time to Triton's that is accepted."""

CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in product((64, 128), (64, 128, 256), (32, 64), (4, 8), (3, 4))
]


def matmul(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    row = first + pid % (GROUP * columns) % height
    column = pid % (GROUP * columns) // height
    along_m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    along_n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    along_k = tl.arange(0, BLOCK_K)
    from_a = a + (along_m % M)[:, None] * K + along_k[None, :]
    from_b = b + along_k[:, None] * N + (along_n % N)[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        left = tl.load(from_a, mask=along_k[None, :] < K - step * BLOCK_K, other=0.0)
        right = tl.load(from_b, mask=along_k[:, None] < K - step * BLOCK_K, other=0.0)
        sums = tl.dot(left, right, sums)
        from_a += BLOCK_K
        from_b += BLOCK_K * N
    to = c + along_m[:, None] * N + along_n[None, :]
    tl.store(to, sums.to(tl.float16), mask=(along_m[:, None] < M) & (along_n[None, :] < N))


def tuned(who, count, dry, processes, keep):
    """The kernel with its configurations, and how often a configuration was measured."""
    measured = []

    def bench(call, quantiles):
        measured.append(None)
        if dry:
            call()
            return [1.0, 1.0, 1.0]
        from triton.testing import do_bench

        return do_bench(call, quantiles=quantiles)

    options = {"configs": CONFIGS[:count], "key": ["M", "N", "K"], "do_bench": bench}
    if who == "triton":
        return triton.autotune(**options)(triton.jit(matmul)), measured
    import tlx_xdsl

    if not dry:
        options["reference"] = lambda at: {"c": (at["a"].float() @ at["b"].float()).half()}
    return tlx_xdsl.autotune(**options, keep=keep, processes=processes, progress=True)(tlx_xdsl.jit(matmul)), measured


class Operand:
    """Looks like a tensor of torch to Triton's runtime."""

    dtype = "torch.float16"
    shape = (1, 1)

    def data_ptr(self):
        return 4096


@contextmanager
def pretended():
    """Let Triton's runtime compile for an H200, and launch nothing."""
    from triton.runtime.driver import driver

    from tlx_xdsl.runtime.jit.stand_in_driver import assume_target

    with assume_target("sm_90a"):
        driver.active.launcher_cls = lambda src, metadata: lambda *arguments: None
        driver.active.utils = types.SimpleNamespace(
            load_binary=lambda *_: (None, 2, 32, 0, 1024),
            get_device_properties=lambda device: {"max_shared_mem": 227 * 1024},
            unload_module=lambda module: None,
        )
        yield


def search(who, size, count, dry, processes, keep):
    """Search, in this process; return what was found as a dictionary."""
    if dry:
        operands, wait = [Operand()] * 3, lambda: None
    else:
        import torch

        torch.manual_seed(0)
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
        operands, wait = [a, b, torch.empty_like(a)], torch.cuda.synchronize
        # The first product of a process makes cuBLAS's handle.
        a @ b
        wait()
    kernel, measured = tuned(who, count, dry, processes, keep)
    start = time.perf_counter()
    grid = lambda at: (triton.cdiv(size, at["BLOCK_M"]) * triton.cdiv(size, at["BLOCK_N"]),)  # noqa: E731
    kernel[grid](*operands, size, size, size)
    wait()
    seconds = time.perf_counter() - start
    found = {"seconds": seconds, "measured": len(measured), "best": str(kernel.best_config)}
    report = getattr(kernel, "report", None)
    if report is not None:
        print(report.table(), file=sys.stderr)
        found |= {"source": report.source, "checked": report.checked, "wrong": len(kernel.wrong)}
        found |= {"compiling": kernel.compile_seconds, "measuring": kernel.measure_seconds}
        from tlx_xdsl.runtime.jit.ahead import processor_count, processors

        found |= {
            "cores": [
                CORES_AT_START,
                len(os.sched_getaffinity(0)),
                len(processors()),
                processor_count(),
                os.cpu_count(),
            ]
        }
    timings = getattr(kernel, "configs_timings", {})
    return found | {"ms": {str(config): times[0] for config, times in timings.items()}}


def in_process(args, who, folder, count, keep=None):
    """Search in a new process with its cache in `folder`."""
    command = [sys.executable, __file__, "--who", who, "--size", str(args.size), "--configs", str(count)]
    if args.processes is not None:
        command += ["--processes", str(args.processes)]
    if keep is not None:
        command += ["--keep", str(keep)]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, *(["--dry"] if args.dry else [])],
        env={**os.environ, "TRITON_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return found | {"process": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096, help="M, N and K (4096)")
    parser.add_argument("--configs", type=int, default=len(CONFIGS), help=f"how many ({len(CONFIGS)})")
    parser.add_argument("--processes", type=int, help="that compile ours (one for each core but one)")
    parser.add_argument("--dry", action="store_true", help="launch nothing")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument("--keep", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--who", choices=("triton", "ours"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.who:
        with pretended() if args.dry else nullcontext():
            print(json.dumps(search(args.who, args.size, args.configs, args.dry, args.processes, args.keep)))
        return
    with tempfile.TemporaryDirectory() as root:
        for who in ("triton", "ours"):
            in_process(args, who, Path(root) / f"{who}-first", 2)
        runs = {
            "ours": in_process(args, "ours", Path(root) / "ours", args.configs),
            "triton": in_process(args, "triton", Path(root) / "triton", args.configs),
            "ours again": in_process(args, "ours", Path(root) / "ours-again", args.configs),
            "second process": in_process(args, "ours", Path(root) / "ours", args.configs),
            "ours, 12 kept": in_process(args, "ours", Path(root) / "ours-kept", args.configs, 12),
        }
    for name, run in runs.items():
        times = f"search {run['seconds']:7.2f} s, process {run['process']:7.2f} s"
        if "compiling" in run:
            times += f" ({run['compiling']:.1f} s compiling, {run['measuring']:.1f} s measuring, cores {run['cores']})"
        print(f"{name:>15}: {times}, {run['measured']} measured, best {run['best']}")
    for name in ("ours", "ours again", "ours, 12 kept"):
        ratios = [runs[name][what] / runs["triton"][what] for what in ("seconds", "process")]
        print(f"{name} / Triton's: search {ratios[0]:.3f}, process {ratios[1]:.3f} (wanted: {WANTED} at most)")
    if args.json:
        Path(args.json).write_text(json.dumps(runs, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
