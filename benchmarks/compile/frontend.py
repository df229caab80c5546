"""The frontend's time: each example's kernel, cold and warm, and the growth with a kernel's size.

    python benchmarks/compile/frontend.py [--runs 7]

*Cold* is the first compilation of a process, with the imports of the frontend but not Python's own start. *Warm* is the
median of later ones, in processor time, which other programs on the machine disturb less. *Growth* unrolls the body of
a loop 1 to 32 times: the time for an operation must stay the same.
"""

import argparse
import importlib.util
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

KERNELS = (
    "hopper_gemm_ws.py:matmul",
    "hopper_gemm_pipelined.py:matmul",
    "hopper_gemm_persistent_cooperative.py:matmul",
    "hopper_gemm_persistent_pingpong.py:matmul",
    "hopper_attention_ws.py:attention",
    "hopper_attention_pipelined.py:attention",
    "hopper_attention_pingpong.py:attention",
    "blackwell_gemm_ws.py:matmul",
    "blackwell_attention_ws.py:attention",
)

LIMIT_MS = 150
"""What an attention kernel may take, warm."""

FACTORS = (1, 2, 4, 8, 16, 32)

UNROLLED = {
    "elementwise": """
@tlx_xdsl.jit
def kernel(x_ptr, y_ptr, COUNT: tl.constexpr):
    offs = tl.arange(0, 128)
    x = tl.load(x_ptr + offs)
    for i in tl.static_range(COUNT):
        y = tl.load(y_ptr + i * 128 + offs, mask=offs < 100, other=0.0)
        x = tl.where(x > y, x * 2.0 + y, tl.math.exp2(x - y))
    tl.store(x_ptr + offs, x)
""",
    "tasks": """
@tlx_xdsl.jit
def kernel(x_ptr, y_ptr, COUNT: tl.constexpr):
    bars = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for i in tl.static_range(COUNT):
                tlx.barrier_wait(bars[0], i & 1)
                tlx.barrier_arrive(bars[1])
        with tlx.async_task(num_warps=4, replicate=2):
            offs = tl.arange(0, 128)
            for i in tl.static_range(COUNT):
                tlx.barrier_arrive(bars[0])
                tlx.barrier_wait(bars[1], i & 1)
                tl.store(x_ptr + offs * i, tl.load(y_ptr + offs * i))
""",
    "calls": """
@tlx_xdsl.jit
def step(x, y, n):
    if n > 3:
        x = x + y
    return tl.maximum(x, y), tl.sum(x, 0)


@tlx_xdsl.jit
def kernel(x_ptr, y_ptr, COUNT: tl.constexpr):
    offs = tl.arange(0, 128)
    x = tl.load(x_ptr + offs)
    for i in tl.static_range(COUNT):
        x, total = step(x, x * 2.0, tl.program_id(0))
        tl.store(y_ptr + i, total)
    tl.store(x_ptr + offs, x)
""",
}

COLD = """
import sys, time
sys.path.insert(0, {root!r})
start = time.perf_counter()
from benchmarks.compile import frontend
frontend.build(*frontend.example({spec!r}))
print((time.perf_counter() - start) * 1e3)
"""


def example(spec):
    """The kernel that `spec` names in `examples/`, and the entries of its TLX_COMPILE table."""
    from tlx_xdsl.tools.launch_line.loading import load_kernel

    return load_kernel(f"{ROOT / 'examples'}/{spec}")


def build(kernel, defaults):
    """The frontend's module, as `tlx compile` makes it."""
    from tlx_xdsl.frontend.compile import build_module
    from tlx_xdsl.targets import target_named

    options = dict(defaults.options)
    capability = target_named(options.pop("target", "sm_90a")).capability
    return build_module(kernel.source, defaults.signature, defaults.constexprs, capability=capability, **options)


def milliseconds(function, runs):
    """The median processor time of `function`, after one run that is not counted."""
    function()
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append((time.process_time() - start) * 1e3)
    return statistics.median(times)


def cold_milliseconds(spec, runs):
    """The median over fresh processes."""
    script = COLD.format(root=str(ROOT), spec=spec)
    return statistics.median(
        float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)
        for _ in range(runs)
    )


def count(module):
    """Count the operations of a module."""
    return sum(1 for _ in module.walk())


def print_examples(runs):
    """A line for each example; whether the attention kernels keep within the limit."""
    print(f"{'kernel':<40}{'operations':>12}{'cold ms':>10}{'warm ms':>10}{'us per op':>12}")
    within = True
    for spec in KERNELS:
        kernel, defaults = example(spec)
        operations = count(build(kernel, defaults))
        warm = milliseconds(lambda kernel=kernel, defaults=defaults: build(kernel, defaults), runs)
        cold = cold_milliseconds(spec, runs)
        print(f"{spec.partition('.')[0]:<40}{operations:>12}{cold:>10.0f}{warm:>10.1f}{warm / operations * 1e3:>12.1f}")
        within &= "attention" not in spec or warm < LIMIT_MS
    print(f"attention kernels under {LIMIT_MS} ms, warm: {'yes' if within else 'NO'}")


def load_source(folder, name, text):
    """The kernel of a source text."""
    path = Path(folder) / f"{name}.py"
    path.write_text("import tlx_xdsl\nimport tlx_xdsl.language as tl\nimport tlx_xdsl.language.tlx as tlx\n\n" + text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def print_growth(runs):
    """A line for each unrolled kernel: the microseconds for an operation, by the number of copies of the body."""
    from tlx_xdsl.frontend.compile import build_module

    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32"}
    print(f"\nmicroseconds for an operation, the body unrolled {', '.join(map(str, FACTORS))} times")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in UNROLLED.items():
            kernel = load_source(folder, name, text)
            each = []
            for factor in FACTORS:
                constexprs = {"COUNT": factor}
                operations = count(build_module(kernel.source, signature, constexprs))
                warm = milliseconds(
                    lambda kernel=kernel, constexprs=constexprs: build_module(kernel.source, signature, constexprs),
                    runs,
                )
                each.append(warm / operations * 1e3)
            print(
                f"    {name:<14}"
                + "".join(f"{value:>8.1f}" for value in each)
                + f"   last to first {each[-1] / each[0]:.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    print_examples(runs)
    print_growth(runs)


if __name__ == "__main__":
    main()
