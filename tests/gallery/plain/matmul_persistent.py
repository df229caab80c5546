"""C = A @ B, persistent: as many programs as there are multiprocessors, and a loop over tiles in each."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, tiles
from tests.gallery.plain.matmul import shapes
from tests.gallery.plain.matmul_descriptors import SIZES, make


@tlx_xdsl.jit
def matmul_persistent(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    num_tiles = num_pid_m * num_pid_n
    num_pid_in_group = GROUP_M * num_pid_n

    for tile_id in tl.range(start, num_tiles, PROGRAMS):
        group_id = tile_id // num_pid_in_group
        first_pid_m = group_id * GROUP_M
        group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
        offs_m = (first_pid_m + tile_id % group_size_m) * BLOCK_M
        offs_n = tile_id % num_pid_in_group // group_size_m * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(k_tiles):
            a = a_desc.load([offs_m, ki * BLOCK_K])
            b = b_desc.load([ki * BLOCK_K, offs_n])
            acc = tl.dot(a, b, acc)
        c_desc.store([offs_m, offs_n], acc.to(c_desc.dtype))


CONFIG = {
    "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "PROGRAMS": 132, "num_warps": 8, "num_stages": 3,
}  # fmt: skip
TLX_COMPILE = {
    "matmul_persistent": {
        "signature": {
            "a_desc": "tensordesc<fp16[128, 64]>",
            "b_desc": "tensordesc<fp16[64, 256]>",
            "c_desc": "tensordesc<fp16[128, 256]>",
            **dict.fromkeys(("M", "N", "K"), "i32"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "PROGRAMS": 132},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    problem = make(shape, new, config)
    problem.grid = (min(problem.grid[0], config["PROGRAMS"]),)
    return problem


def _constants(shape: Shape) -> Config:
    return {"PROGRAMS": shape["programs"]} if "programs" in shape else {}


FAMILY = Family(
    matmul_persistent,
    _make,
    CONFIG,
    # Several tiles for each program, as in the programs of large problems.
    shapes((513, 520, 192), (256, 1024, 64), (300, 776, 136), (1000, 264, 8), programs=2)
    + shapes(*SIZES)
    + shapes((700, 700 // 8 * 8, 96), dtype="bf16", programs=3),
    shapes((8192, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 512), (16384, 2048, 1024)),
    tiles((64, 128), (128, 256), (64,), GROUP_M=8) + tiles((128,), (128, 256), (128,), GROUP_M=8),
    constants=_constants,
)
