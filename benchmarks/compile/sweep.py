"""A sweep over configurations of a Hopper GEMM: on two workers against one, and what pruning saves.

    python benchmarks/compile/sweep.py [--full] [--workers 2] [--threads]

200 configurations with `--full`, every ninth of them without; three in ten can't fit. All of them are compiled with
each number of workers; then those that were pruned are compiled to the end, as without pruning (of the 200, every
third). Nothing is cached, and the start of the processes is counted. The load of the machine is printed, too: on a
busy one, ratios say less. `--threads` adds threads of one process, each with its backend worker, instead of processes.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime import compile_many, sweep_jobs
from tlx_xdsl.runtime.driver.compilation import Specialization

TILES = ((128, 64), (128, 128), (128, 256), (256, 128))


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, GROUP_M: tl.constexpr, SUBTILES: tl.constexpr,
):  # fmt: skip
    """One producer, two consumers; C goes through shared memory of its own in one or two parts."""
    HALF_M: tl.constexpr = BLOCK_M // 2
    PART_N: tl.constexpr = BLOCK_N // SUBTILES
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    off_m = (first_m + pid % (GROUP_M * tiles_n) % group_m) * BLOCK_M
    off_n = pid % (GROUP_M * tiles_n) // group_m * BLOCK_N
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((HALF_M, BLOCK_K), tl.float16, 2 * NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), tl.float16, NUM_STAGES)
    c = tlx.local_alloc((HALF_M, PART_N), tl.float16, 2)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(num_k):
                stage = k % NUM_STAGES
                tlx.barrier_wait(empty[stage], ((k // NUM_STAGES) & 1) ^ 1)
                tlx.barrier_expect_bytes(full[stage], (BLOCK_M + BLOCK_N) * BLOCK_K * 2)
                tlx.async_descriptor_load(a_desc, a[stage * 2], [off_m, k * BLOCK_K], full[stage])
                tlx.async_descriptor_load(b_desc, b[stage], [k * BLOCK_K, off_n], full[stage])
                tlx.async_descriptor_load(a_desc, a[stage * 2 + 1], [off_m + HALF_M, k * BLOCK_K], full[stage])

        with tlx.async_task(num_warps=4, replicate=2, registers=232):
            half = tlx.async_task_replica_id()
            acc = tl.zeros((HALF_M, BLOCK_N), tl.float32)
            for k in range(num_k):
                stage = k % NUM_STAGES
                tlx.barrier_wait(full[stage], (k // NUM_STAGES) & 1)
                acc = tlx.async_dot(a[stage * 2 + half], b[stage], acc, use_acc=k > 0)
                acc = tlx.async_dot_wait(1, acc)
                tlx.barrier_arrive(empty[(k + NUM_STAGES - 1) % NUM_STAGES], pred=k > 0)
            acc = tlx.async_dot_wait(0, acc)
            parts = (acc,) if SUBTILES == 1 else acc.reshape(HALF_M, 2, PART_N).permute(0, 2, 1).split()
            for part in tl.static_range(SUBTILES):
                tlx.local_store(c[half], parts[part].to(tl.float16))
                tlx.fence_async_shared()
                tlx.async_descriptor_store(c_desc, c[half], [off_m + half * HALF_M, off_n + part * PART_N])
                tlx.async_descriptor_store_wait(0)


BASE = Specialization(
    {
        "a_desc": "tensordesc<fp16[{BLOCK_M // 2}, {BLOCK_K}]>",
        "b_desc": "tensordesc<fp16[{BLOCK_K}, {BLOCK_N}]>",
        "c_desc": "tensordesc<fp16[{BLOCK_M // 2}, {BLOCK_N // SUBTILES}]>",
        "M": "i32",
        "N": "i32",
        "K": "i32",
    },
    {"BLOCK_K": 64},
)


def all_jobs():
    choices = {"NUM_STAGES": (2, 3, 4, 5, 7), "SUBTILES": (1, 2), "GROUP_M": (2, 4, 8, 16, 32)}
    return [
        job
        for block_m, block_n in TILES
        for job in sweep_jobs(matmul, BASE, {"BLOCK_M": (block_m,), "BLOCK_N": (block_n,), **choices})
    ]


def row(what, report):
    load = os.getloadavg()[0]
    print(f"    {what:<32}{report.seconds:8.1f} s   load {load:4.1f}   {report.summary}", flush=True)


def seconds_of(results):
    return sum(result.seconds for result in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all 200 configurations")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", action="store_true", help="also threads of one process")
    args = parser.parse_args()
    jobs = all_jobs() if args.full else all_jobs()[::9]
    print(f"{len(jobs)} configurations of a Hopper GEMM, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    several = compile_many(jobs, workers=args.workers)
    row(f"{args.workers} workers", several)
    one = compile_many(jobs, workers=1)
    row("1 worker", one)
    print(f"    {args.workers} workers take {several.seconds / one.seconds:.2f} of the time of 1")
    assert [result.kind for result in several] == [result.kind for result in one]
    if args.threads:
        with ThreadPoolExecutor(args.workers) as pool:
            threads = compile_many(jobs, pool)
        row(f"{args.workers} threads", threads)
        print(f"    threads take {threads.seconds / several.seconds:.2f} of the time of processes")
    pruned = [result for result in several if result.kind == "pruned"]
    sample = pruned[:: 3 if args.full else 1]
    whole = compile_many([result.job for result in sample], workers=args.workers, prune=False)
    row(f"{len(sample)} of {len(pruned)} pruned, to the end", whole)
    assert not any(result.is_launchable for result in whole), "pruned, and yet it can be launched"
    # In time of the processes, which the start of a pool is no part of.
    left, taken = seconds_of(pruned), seconds_of(whole) * len(pruned) / max(len(sample), 1)
    rest = seconds_of(several) - left
    print(f"    a pruned configuration takes {left / max(taken, 1e-9):.2f} of the time that it takes to the end")
    print(f"    the sweep takes {(rest + left) / (rest + taken):.2f} of the time without pruning")


if __name__ == "__main__":
    main()
