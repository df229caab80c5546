"""Time the interpreter: a GEMM and an attention, and the growth of its time with the number of programs.

    python benchmarks/interpreter/speed.py

Prints seconds (the best of three runs in this process, one core) and ratios of one run.
"""

import os
import sys
import time
from pathlib import Path

# Measured is one core; numpy's own threads would blur the growth.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.gallery.synchronisation.example_runs import attention, gemm


def seconds(case, **options):
    """The best of three runs, compiling included, and the time per program of the best."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        case.run(**options)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    square = gemm("hopper_gemm_ws.py", 512, 512, 512, **tiles)
    heads = attention("hopper_attention_ws.py", 1, 1024, head_dim=64)
    for name, case, limit in (
        ("GEMM 512 x 512 x 512, 128 x 128 x 64 tiles", square, 2),
        ("attention 1 x 1024 x 64", heads, 4),
    ):
        for stage in ("frontend", "ttgir"):
            for jobs in (1, 2):
                print(f"{name}, {stage}, {jobs} jobs: {seconds(case, stage=stage, jobs=jobs):.2f} s (limit {limit} s)")
    print("programs  seconds  ms per program")
    for rows in (1, 2, 4, 8, 16):
        case = gemm("hopper_gemm_ws.py", 128 * rows, 512, 512, **tiles)
        taken = seconds(case, stage="frontend", jobs=1)
        print(f"{case.grid[0]:8d}  {taken:7.3f}  {taken / case.grid[0] * 1e3:7.2f}")


if __name__ == "__main__":
    main()
