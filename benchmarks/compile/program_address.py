"""Time the analysis of addresses: for the examples, and for kernels of 200 to 20,000 operations.

python benchmarks/compile/program_address.py
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.addresses import analyse_program_addresses
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = {
    "hopper_attention_pingpong.py:attention": "attention",
    "hopper_attention_pipelined.py:attention": "attention",
    "hopper_gemm_ws.py:matmul": "GEMM",
}
SIZES = (200, 600, 2000, 6000, 20000)


def example(name: str) -> ModuleOp:
    """An example's module after the frontend."""
    kernel, settings = load_kernel(f"{ROOT / 'examples' / name}")
    options = settings.options
    specialization = Specialization(settings.signature, settings.constexprs, num_warps=options.get("num_warps", 4))
    return frontend_module(kernel.source, specialization)


def chain(size: int) -> ModuleOp:
    """A kernel whose values depend on all those before them."""
    lines = ["%0 = tt.get_program_id x : i32", "%c = arith.constant 3 : i32"]
    kinds = ("addi", "muli", "addi", "remsi", "subi", "divsi", "maxsi", "addi")
    for number in range(1, size - 1):
        right = "%n" if number % 5 == 0 else "%c"
        lines.append(f"%{number} = arith.{kinds[number % len(kinds)]} %{number - 1}, {right} : i32")
    lines.append(f"%q = tt.addptr %p, %{size - 2} : !tt.ptr<f32>, i32")
    lines.append("%v = tt.load %q : !tt.ptr<f32>")
    return kernel(lines)


def blocks(size: int) -> ModuleOp:
    """A kernel of many accesses, each with its own addresses."""
    lines = [
        "%pid = tt.get_program_id x : i32",
        "%range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>",
        "%base = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>",
    ]
    for number in range(size // 6):
        lines += [
            f"%c{number} = arith.constant {64 + number} : i32",
            f"%a{number} = arith.muli %pid, %c{number} : i32",
            f"%s{number} = tt.splat %a{number} : i32 -> tensor<64xi32>",
            f"%o{number} = arith.addi %s{number}, %range : tensor<64xi32>",
            f"%q{number} = tt.addptr %base, %o{number} : tensor<64x!tt.ptr<i32>>, tensor<64xi32>",
            f"%v{number} = tt.load %q{number} : tensor<64x!tt.ptr<i32>>",
        ]
    return kernel(lines, "i32")


def nests(size: int) -> ModuleOp:
    """A kernel of loops four deep, whose pointers move."""
    lines = ["%c0 = arith.constant 0 : i32", "%c1 = arith.constant 1 : i32", "%c8 = arith.constant 8 : i32"]
    for number in range(size // 18):
        for depth in range(4):
            begin = "%p" if depth == 0 else f"%q{number}_{depth - 1}"
            lines.append(
                f"%r{number}_{depth} = scf.for %i{number}_{depth} = %c0 to %c8 step %c1 "
                f"iter_args(%q{number}_{depth} = {begin}) -> (!tt.ptr<f32>) : i32 {{"
            )
        lines.append(f"%v{number} = tt.load %q{number}_3 : !tt.ptr<f32>")
        for depth in reversed(range(4)):
            lines.append(f"%n{number}_{depth} = tt.addptr %q{number}_{depth}, %c8 : !tt.ptr<f32>, i32")
            lines.append(f"scf.yield %n{number}_{depth} : !tt.ptr<f32>")
            lines.append("}")
    return kernel(lines)


def kernel(lines: list[str], element: str = "f32") -> ModuleOp:
    """A kernel with these lines."""
    body = "\n".join(lines)
    return parse_module(f"tt.func public @f(%p: !tt.ptr<{element}>, %n: i32) {{\n{body}\ntt.return\n}}")


def best(run: Callable[[], object], rounds: int = 5) -> float:
    """The shortest processor time of some rounds, in seconds, without the garbage collector, as in `timeit`."""
    times: list[float] = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        before = time.process_time()
        run()
        times.append(time.process_time() - before)
        gc.enable()
    return min(times)


def main() -> None:
    for name, what in EXAMPLES.items():
        module = example(name)
        count = sum(1 for _ in module.walk())
        print(f"{what:10} {name:42} {count:6} ops {1000 * best(lambda m=module: analyse_program_addresses(m)):8.1f} ms")
    for make in (chain, blocks, nests):
        for size in SIZES:
            module = make(size)
            count = sum(1 for _ in module.walk())
            seconds = best(lambda m=module: analyse_program_addresses(m), 3)
            print(
                f"{make.__name__:10} {'':42} {count:6} ops {1000 * seconds:8.1f} ms {1e6 * seconds / count:6.1f} us/op"
            )


if __name__ == "__main__":
    main()
