"""Compile time of TTL kernels against the number of operations, and the time of each pass.

    python benchmarks/compile/ttl.py [--sizes 4 8 16 32] [--runs 3] [--to ttkernel]

Kernels are so many loops one after the other, each of which adds four tensors. A line gives the best time of a pass in
ms, and how it grew against how the operations grew: 1 is linear. The dependence test alone is measured, too, with and
without enumeration. Then from Python to C++: a kernel with a chain of element-wise operations (8 to 128), one with
loops one after the other (2 to 32), and kernels that have a limit: the example of a matrix product (150 ms), a product
on 8x8 cores that multicast (3 s and 300 lines of C++), and 256 stores without a loop (4 s). Times are of the processor;
beside other work on the machine they are up to twice as long.
"""

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.analysis.affine_dependence import Access, Loop, conflicts
from tlx_xdsl.ttl.analysis.linear import Linear
from tlx_xdsl.ttl.language import TensorSpec
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime import compile_kernel
from tlx_xdsl.ttl.transforms.pipeline import ttl_pipeline

TILE = "!ttcore.tile<32x32, f32>"
VIEW = f"tensor<1x1x{TILE}>"
CB = f"!ttl.cb<[1, 1], {TILE}, 2>"
TENSOR = "tensor<1024x1024xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>"
ACCESSOR = f"!ttl.tensor_accessor<{TENSOR}>"
INPUTS = 4


def kernel(groups: int) -> str:
    """A kernel of loops one after the other, each of which adds `INPUTS` tensors."""
    lines = ["ttl.kernel @k(" + ", ".join(f"%t{i}: {TENSOR}" for i in range(INPUTS + 1)) + ") {"]
    for i in range(INPUTS + 1):
        lines.append(f"%cb{i} = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=2 : {CB}")
        lines.append(f"%acc{i} = ttl.tensor_accessor %t{i} : {TENSOR} -> {ACCESSOR}")
    reads, computes, writes = [], [], []
    for group in range(groups):
        for body in (reads, computes, writes):
            body.append(f"affine.for %i{group} = 0 to 8 {{")
        row = f"%r{group} = affine.apply affine_map<(d0) -> (d0 + {group % 24})> (%i{group})"
        reads.append(row)
        writes.append(row)
        for i in range(INPUTS):
            reads += [
                f"%v{i} = ttl.cb_reserve %cb{i} : {CB} -> {VIEW}",
                f"%x{i} = ttl.copy %acc{i}[%r{group}, %i{group}], %v{i} : {ACCESSOR}, {VIEW} "
                "-> !ttl.transfer_handle<read>",
                f"ttl.wait %x{i}",
                f"ttl.cb_push %cb{i}",
            ]
            computes.append(f"%v{i} = ttl.cb_wait %cb{i} : {CB} -> {VIEW}")
        computes.append(f"%s0 = ttl.exp %v0 : {VIEW} -> {VIEW}")
        for i in range(1, INPUTS):
            computes.append(f"%s{i} = ttl.add %s{i - 1}, %v{i} : {VIEW}, {VIEW} -> {VIEW}")
        computes += [
            f"%o = ttl.cb_reserve %cb{INPUTS} : {CB} -> {VIEW}",
            f"ttl.store %s{INPUTS - 1}, %o : {VIEW}, {VIEW}",
            *(f"ttl.cb_pop %cb{i}" for i in range(INPUTS)),
            f"ttl.cb_push %cb{INPUTS}",
        ]
        writes += [
            f"%w = ttl.cb_wait %cb{INPUTS} : {CB} -> {VIEW}",
            f"%x = ttl.copy %w, %acc{INPUTS}[%r{group}, %i{group}] : {VIEW}, {ACCESSOR} -> !ttl.transfer_handle<write>",
            "ttl.wait %x",
            f"ttl.cb_pop %cb{INPUTS}",
        ]
        for body in (reads, computes, writes):
            body.append("}")
    for kind, body in (("datamovement", reads), ("compute", computes), ("datamovement", writes)):
        lines += [f"ttl.{kind}_thread {{", *body, "ttl.thread_return", "}"]
    return "\n".join([*lines, "ttl.kernel_return", "}"])


def best(runs: int, once: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The smallest time of each stage, in ms."""
    found = [once() for _ in range(runs)]
    return {name: min(each[name] for each in found) for name in found[0]}


def compile_times(text: str, to: str) -> dict[str, float]:
    """The time of each pass."""
    context = make_context()
    times: dict[str, float] = {}
    start = time.perf_counter()
    module = parse_module(text, filename="kernel.mlir")
    times["parse"] = (time.perf_counter() - start) * 1e3
    for each in ttl_pipeline(to=to):
        start = time.perf_counter()
        each.apply(context, module)
        times[each.name] = (time.perf_counter() - start) * 1e3
    times["all"] = sum(times.values())
    return times


def analysis_times(pairs: int) -> dict[str, float]:
    """Microseconds of a dependence test: enumerated, and by inequalities."""
    i, j = Linear.of("i"), Linear.of("j")
    loops = tuple(Loop(name, (Linear(0),), (Linear(16),)) for name in "ij")
    first = Access(loops, ((i, 1), (j, 1)), True)
    second = Access(loops, ((i + 1, 1), (j * 2, 2)), True)
    times = {}
    for name, enumerated in (("enumerated", 4096), ("inequalities", 0)):
        start = time.perf_counter()
        for _ in range(pairs):
            conflicts(first, second, enumerated=enumerated)
        times[name] = (time.perf_counter() - start) / pairs * 1e6
    return times


# --- from Python ----------------------------------------------------------------------------------------------------

HEADER = """import tlx_xdsl.ttl.language as ttl

@ttl.kernel(grid=(1, 1))
def kernel(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2))
"""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "ttl"
STORES = 256
LINES = 300
"""Lines of C++ of the product on 8x8 cores."""


def python_kernel(loops: int, operations: int) -> str:
    """A kernel of loops one after the other, each with a chain of operations on two blocks."""
    threads: dict[str, list[str]] = {"compute": [], "read": [], "write": []}
    steps = [f"            v = {('v + y', 'v * x', 'ttl.math.max(v, y)', '-v')[i % 4]}" for i in range(operations)]
    for loop in range(loops):
        for thread in threads.values():
            thread.append("    for i in range(4):")
        held = "with a_cb.{0}() as x, b_cb.{0}() as y"
        threads["compute"] += [f"        {held.format('wait')}, out_cb.reserve() as o:", "            v = x", *steps]
        threads["compute"].append("            o.store(v)")
        threads["read"].append(f"        {held.format('reserve')}:")
        threads["read"] += [f"            ttl.copy({name}[i + {loop}, 0:2], {block})" for name, block in ("ax", "by")]
        threads["write"] += ["        with out_cb.wait() as o:", f"            ttl.copy(o, out[i + {loop}, 0:2])"]
    lines: list[str] = []
    for name, body in threads.items():
        kind = "compute" if name == "compute" else "datamovement"
        lines += ["", f"    @ttl.{kind}()", f"    def {name}():", *("    " + line for line in body)]
    return HEADER + "\n".join(lines) + "\n"


def stores_kernel(stores: int) -> str:
    """A kernel without loops: so many blocks of two tensors are multiplied, and stored to their own places."""
    threads: dict[str, list[str]] = {"compute": ["with a_cb.wait() as x, b_cb.wait() as y:"], "read": [], "write": []}
    threads["read"] += ["with a_cb.reserve() as x, b_cb.reserve() as y:"]
    threads["read"] += ["    ttl.copy(a[0, 0:2], x).wait()", "    ttl.copy(b[0, 0:2], y).wait()"]
    for store in range(stores):
        threads["compute"] += ["    with out_cb.reserve() as o:", f"        o.store(x + y * {store}.0)"]
        threads["write"] += ["with out_cb.wait() as o:", f"    ttl.copy(o, out[{store}, 0:2]).wait()"]
    lines: list[str] = []
    for name, body in threads.items():
        kind = "compute" if name == "compute" else "datamovement"
        lines += ["", f"    @ttl.{kind}()", f"    def {name}():", *("        " + line for line in body)]
    return HEADER.replace("(1, 2)", "(1, 1)") + "\n".join(lines).replace("0:2", "0") + "\n"


def load(path: Path) -> ModuleType:
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_ms(kernel: Kernel, specs: list[TensorSpec], runs: int) -> tuple[float, int]:
    """The time of the processor from Python to C++, and the lines of that."""
    found: list[tuple[float, int]] = []
    for _ in range(runs + 1):
        start = time.process_time()
        compiled = compile_kernel(kernel, specs)
        ms = (time.process_time() - start) * 1e3
        lines = [line for text in compiled.sources.values() for line in text.splitlines()]
        found.append((ms, sum(not line.lstrip().startswith("#line") for line in lines)))
    return min(found)


def print_python(runs: int) -> None:
    """Print how the time grows with the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        for what, sizes in (("operations", (8, 16, 32, 64, 128)), ("loops", (2, 4, 8, 16, 32))):
            times: list[float] = []
            for size in sizes:
                path = Path(folder) / f"{what}_{size}.py"
                path.write_text(python_kernel(*((1, size) if what == "operations" else (size, 4))), encoding="utf-8")
                times.append(compile_ms(load(path).kernel, [TensorSpec((2048, 64))] * 3, runs)[0])
            slope = (times[-1] - times[0]) / (sizes[-1] - sizes[0])
            last = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
            print(f"{what} {', '.join(map(str, sizes))}: {', '.join(f'{each:.0f}' for each in times)} ms; "
                  f"{slope:.2f} ms each, {last:.2f} at the end")  # fmt: skip


def print_limits(runs: int) -> None:
    """Print the times of kernels that have a limit, in ms."""
    specs = [TensorSpec(shape) for shape in ((128, 96), (96, 64), (128, 64))]
    ms, _ = compile_ms(load(EXAMPLES / "matmul.py").matmul, specs, runs)
    print(f"examples/ttl/matmul.py: {ms:.0f} ms of 150")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "summa.py"
        path.write_text((EXAMPLES / "summa.py").read_text(encoding="utf-8").replace("CORES = 4", "CORES = 8"))
        ms, lines = compile_ms(load(path).summa, [TensorSpec((256, 256))] * 3, runs)
        print(f"examples/ttl/summa.py on 8x8 cores: {ms:.0f} ms of 3000, {lines} lines of {LINES}")
        path = Path(folder) / "stores.py"
        path.write_text(stores_kernel(STORES), encoding="utf-8")
        ms, lines = compile_ms(load(path).kernel, [TensorSpec((32 * STORES, 32))] * 3, runs)
        print(f"{STORES} stores: {ms:.0f} ms of 4000, {lines} lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--to", default="ttkernel")
    arguments = parser.parse_args()
    rows: list[tuple[int, dict[str, float]]] = []
    for size in arguments.sizes:
        text = kernel(size)
        operations = sum(1 for _ in parse_module(text, filename="kernel.mlir").walk())
        rows.append((operations, best(arguments.runs, lambda text=text: compile_times(text, arguments.to))))
    print(f"{'operations':<34}" + "".join(f"{operations:>10}" for operations, _ in rows) + f"{'growth':>10}")
    (few, first), (many, last) = rows[0], rows[-1]
    for name in last:
        growth = last[name] / max(first[name], 1e-3) / (many / few)
        print(f"{name:<34}" + "".join(f"{times[name]:>10.2f}" for _, times in rows) + f"{growth:>9.2f}x")
    for name, microseconds in analysis_times(50).items():
        print(f"dependence test, {name}: {microseconds:.0f} us")
    print_python(arguments.runs)
    print_limits(arguments.runs)


if __name__ == "__main__":
    main()
