"""Time stock Triton as it follows the bytes of a ring of buffers: the smallest kernel that has one, in plain TTGIR.

    python benchmarks/compile/buffer_regions.py [--runs 5]

Nothing of ours is in the kernel: a ring in shared memory, and a loop that writes and reads one of its tiles. What grows
with the ring is the tile; the operations, the LLVM IR and the code stay the same.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.compile.region_passes import cpu_ms, region_times
from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version

STAGES = 2
ROWS = (16, 32, 64, 128, 256)
ROW_BYTES = 128
KERNEL = """
#shared = #ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}}>
#smem = #ttg.shared_memory
#barrier = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @ring(%from: {descriptor}, %to: {descriptor}, %count: i32) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %stages = arith.constant {stages} : i32
    %true = arith.constant true
    %ring = ttg.local_alloc : () -> !ttg.memdesc<{stages}x{rows}x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    scf.for %i = %zero to %count step %one : i32 {{
      %stage = arith.remsi %i, %stages : i32
      %phase = arith.andi %i, %one : i32
      %tile = ttg.memdesc_index %ring[%stage] : !ttg.memdesc<{stages}x{rows}x64xf16, #shared, #smem, mutable>
        -> {tile}
      ttng.barrier_expect %full, {bytes}, %true : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
      ttng.async_tma_copy_global_to_local %from[%i, %zero] %tile, %full, %true : {descriptor},
        !ttg.memdesc<1xi64, #barrier, #smem, mutable> -> {tile}
      ttng.wait_barrier %full, %phase : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
      ttng.async_tma_copy_local_to_global %to[%i, %zero] %tile : {descriptor}, {tile}
      ttng.async_tma_store_wait {{pendings = 0 : i32}}
    }}
    ttng.inval_barrier %full : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    tt.return
  }}
}}
"""


def kernel(rows, version):
    """The kernel with tiles of `rows` x 64 fp16; Triton 3.8 changed how the type of a descriptor is spelt."""
    block = f"{rows}x64xf16, #shared" if version >= (3, 8) else f"tensor<{rows}x64xf16, #shared>"
    return KERNEL.format(
        stages=STAGES,
        rows=rows,
        bytes=rows * ROW_BYTES,
        descriptor=f"!tt.tensordesc<{block}>",
        tile=f"!ttg.memdesc<{rows}x64xf16, #shared, #smem, mutable>",
    )


def measure(text):
    """Compile up to LLVM IR; return the CPU time in ms, that of each of the two passes, and the lines of LLVM IR."""
    start = cpu_ms()
    result = compile_ttgir(text, BackendOptions(), isolation="none", stages="llir")
    return cpu_ms() - start, region_times(result.ttgir), result.llir.count("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    installed = installed_triton_version()
    version = tuple(map(int, installed.split(".")[:2]))
    names = measure(kernel(ROWS[0], version))[1]
    print(f"stock Triton {installed}, a ring of {STAGES} tiles to LLVM IR, medians of {runs}, CPU ms")
    print(f"{'ring':>10}{'all':>8}" + "".join(f"{name:>24}" for name in names) + f"{'lines of LLVM IR':>20}")
    for rows in ROWS:
        measured = [measure(kernel(rows, version)) for _ in range(runs)]
        everything = statistics.median(one[0] for one in measured)
        passes = [statistics.median(one[1][name] for one in measured) for name in names]
        ring = f"{STAGES * rows * ROW_BYTES // 1024} KiB"
        print(f"{ring:>10}{everything:8.0f}" + "".join(f"{ms:24.1f}" for ms in passes) + f"{measured[0][2]:20}")


if __name__ == "__main__":
    main()
