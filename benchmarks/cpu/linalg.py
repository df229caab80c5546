"""Time `triton-to-linalg`, and its growth with the operations of a kernel.

    python benchmarks/cpu/linalg.py

Prints the time of a matmul kernel, pass by pass, and of kernels with more and more loads and stores; each time is the
best of several runs in one process, and a growth of 1.0 means time proportional to the operations.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from xdsl.dialects.builtin import ModuleOp

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.cpu.linalg.triton_to_linalg import TritonToLinalgPass, linalg_pipeline
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.parser import parse_module

RUNS = 5
SIZES = (200, 600, 2000, 6000, 20000)


@tlx_xdsl.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * sa + depth[None, :]
    at_b = b + depth[:, None] * sb + cols[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(at_a, mask=depth[None, :] < K - k * BK, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK
        at_b += BK * sb
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * sc + cols[None, :], total, mask=inside)


def matmul_module() -> ModuleOp:
    """The module of the matmul kernel."""
    signature = {
        **dict.fromkeys("ab", "*fp16"),
        "c": "*fp32",
        **dict.fromkeys(("M", "N", "K", "sa", "sb", "sc"), "i32"),
    }
    return plain_module(source_of(matmul), Specialization(signature, {"BM": 128, "BN": 64, "BK": 32}))


def chain(operations: int) -> ModuleOp:
    """A kernel of about so many operations: masked loads, sums and stores, one after the other."""
    each = """
  %o{i} = arith.addi %o{j}, %step : tensor<64xi32>
  %m{i} = arith.cmpi slt, %o{i}, %limit : tensor<64xi32>
  %p{i} = tt.addptr %base, %o{i} : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v{i} = tt.load %p{i}, %m{i}, %zeros : tensor<64x!tt.ptr<f32>>
  %w{i} = arith.addf %v{i}, %w{j} : tensor<64xf32>
  tt.store %p{i}, %w{i}, %m{i} : tensor<64x!tt.ptr<f32>>"""
    body = "".join(each.format(i=i, j=i - 1) for i in range(1, operations // 6 + 1))
    return parse_module(f"""tt.func public @chain(%x: !tt.ptr<f32>, %n: i32, %s: i32) {{
  %o0 = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32>
  %step = tt.splat %s : i32 -> tensor<64xi32>
  %limit = tt.splat %n : i32 -> tensor<64xi32>
  %base = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %w0 = arith.constant dense<0.0> : tensor<64xf32>{body}
  tt.return
}}""")


def best(make: Callable[[], ModuleOp], run: Callable[[ModuleOp], None], runs: int) -> float:
    """Milliseconds of the fastest of several runs, each on a module of its own."""
    times: list[float] = []
    for _ in range(runs):
        module = make()
        before = time.perf_counter()
        run(module)
        times.append((time.perf_counter() - before) * 1e3)
    return min(times)


def main() -> None:
    """Print the tables."""
    context = make_context()

    def whole(module: ModuleOp) -> None:
        TritonToLinalgPass().apply(context, module)

    module = matmul_module()
    print(f"matmul, {sum(1 for _ in module.walk())} operations: {best(module.clone, whole, RUNS):.1f} ms")
    passes = linalg_pipeline()
    times = {each.name: float("inf") for each in passes}
    for _ in range(RUNS):
        copy = module.clone()
        for each in passes:
            before = time.perf_counter()
            each.apply(context, copy)
            times[each.name] = min(times[each.name], (time.perf_counter() - before) * 1e3)
    for name, milliseconds in times.items():
        print(f"  {name:<28}{milliseconds:8.1f} ms")
    print("operations      ms  ms/operation  growth")
    first: float | None = None
    for size in SIZES:
        module = chain(size)
        count = sum(1 for _ in module.walk())
        milliseconds = best(module.clone, whole, RUNS if size <= 2000 else 1)
        each = milliseconds / count
        first = each if first is None else first
        print(f"{count:10d}{milliseconds:8.0f}{each:14.3f}{each / first:8.2f}")


if __name__ == "__main__":
    main()
