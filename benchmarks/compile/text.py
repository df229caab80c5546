"""Speed of `tlx_xdsl.text`: parsing, verification with dominance, and printing, against the number of operations.

    python benchmarks/compile/text.py [--sizes 200 2000 20000]

Ours is a module of loops over blocks with layouts, aliased and located; the peer is plain xDSL on a module of the
same size in its own dialects (func, scf, arith on tensors), measured in the same run. Rates are in thousand operations
per second of processor time, best of three; the last column is the milliseconds that tlx-opt takes for an operation
without passes, which reads, verifies once and prints. It is the same for all sizes, since all three are linear.
"""

import argparse
import sys
import time
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.parser import Parser
from xdsl.printer import Printer

from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

HEADER = "#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>\n"
OPERATIONS_OF_A_LOOP = 10


def our_text(operations):
    loops = operations // OPERATIONS_OF_A_LOOP
    lines = [HEADER, "tt.func public @k(%p: tensor<64x64x!tt.ptr<f32>, #b>, %n: i32) {", "%c0 = arith.constant 0 : i32"]
    lines.append("%c1 = arith.constant 1 : i32")
    for index in range(loops):
        lines.append(
            f"scf.for %i{index}x = %c0 to %n step %c1 : i32 {{\n"
            f"  %a{index}x = tt.load %p : tensor<64x64x!tt.ptr<f32>, #b> loc(#loc{index})\n"
            f"  %b{index}x = arith.addf %a{index}x, %a{index}x : tensor<64x64xf32, #b> loc(#loc{index})\n"
            f"  %c{index}x = arith.mulf %b{index}x, %a{index}x : tensor<64x64xf32, #b> loc(#loc{index})\n"
            f"  %d{index}x = arith.subf %c{index}x, %b{index}x : tensor<64x64xf32, #b> loc(#loc{index})\n"
            f"  %e{index}x = arith.divf %d{index}x, %a{index}x : tensor<64x64xf32, #b> loc(#loc{index})\n"
            f"  %f{index}x = arith.addf %e{index}x, %d{index}x : tensor<64x64xf32, #b> loc(#loc{index})\n"
            f"  %g{index}x = arith.negf %f{index}x : tensor<64x64xf32, #b> loc(#loc{index})\n"
            f"  tt.store %p, %g{index}x : tensor<64x64x!tt.ptr<f32>, #b> loc(#loc{index})\n"
            "}"
        )
    lines.extend(["tt.return", "}"])
    lines.extend(f'#loc{index} = loc("kernel.py":{index + 1}:5)' for index in range(loops))
    return "\n".join(lines) + "\n"


def plain_text(operations):
    loops = operations // OPERATIONS_OF_A_LOOP
    lines = ["func.func @k(%p: tensor<64x64xf32>, %n: i32) {", "%c0 = arith.constant 0 : i32"]
    lines.append("%c1 = arith.constant 1 : i32")
    for index in range(loops):
        body = "\n".join(
            f"  %v{index}x{step} = arith.addf %p, %p : tensor<64x64xf32>" for step in range(OPERATIONS_OF_A_LOOP - 2)
        )
        lines.append(f"scf.for %i{index}x = %c0 to %n step %c1 : i32 {{\n{body}\n}}")
    lines.extend(["func.return", "}"])
    return "\n".join(lines) + "\n"


def best_of_three(function):
    times = []
    for _ in range(3):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def plain_parse(text):
    context = Context()
    for name, load in get_all_dialects().items():
        context.register_dialect(name, load)
    return Parser(context, text).parse_module()


def plain_print(module):
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def row(label, operations, *times):
    rates = "".join(f"{operations / seconds / 1e3:10.1f}" for seconds in times)
    print(f"{label:<10}{operations:>8}{rates}{sum(times) / operations * 1e3:10.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 2000, 20000])
    sizes = parser.parse_args().sizes
    print(f"{'':<10}{'ops':>8}{'parse':>10}{'verify':>10}{'print':>10}{'ms/op':>10}")
    for size in sizes:
        text = our_text(size)
        parse_time, module = best_of_three(lambda text=text: parse_module(text))
        operations = sum(1 for _ in module.walk())
        verify_time, _ = best_of_three(lambda module=module: verify_module(module))
        print_time, _ = best_of_three(lambda module=module: print_module(module))
        row("ours", operations, parse_time, verify_time, print_time)
        text = plain_text(size)
        parse_time, module = best_of_three(lambda text=text: plain_parse(text))
        operations = sum(1 for _ in module.walk())
        verify_time, _ = best_of_three(module.verify)
        print_time, _ = best_of_three(lambda module=module: plain_print(module))
        row("xDSL", operations, parse_time, verify_time, print_time)


if __name__ == "__main__":
    main()
