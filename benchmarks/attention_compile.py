"""Cold compiles of attention to a cubin: ours against stock Triton's, with the share of our Python side.

    python benchmarks/attention_compile.py [--runs 5]

All kernels have the same tile, head dimension and pipeline depth (stock_attention.py, tlx_attention.py). Ours is
measured twice: the example, whose code stands in the binary twice (once for each consumer), and a kernel of stock's
structure. Each kernel has one process, with everything imported and one compile before, because the first one of a
process sets up LLVM. A round loads the kernel's file anew, empties the memos of our functions and the cache folder, and
takes the time from the Python function to the cubin. The kernels take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]


def ours(spec):
    """Return the function that compiles a kernel anew and gives its stages in ms."""
    from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version
    from tlx_xdsl.runtime.compilation import Specialization, compile_text
    from tlx_xdsl.tools.loading import load_kernel

    def compile_kernel():
        forget()
        kernel, defaults = load_kernel(spec)
        start = time.perf_counter()
        wanted = Specialization(defaults.signature, defaults.constexprs)
        text = compile_text(kernel.source, wanted, triton_version=installed_triton_version(), keep_ttir=False)
        python = time.perf_counter()
        result = compile_ttgir(text.ttgir, BackendOptions(), isolation="none")
        end = time.perf_counter()
        assert result.cubin
        return {"total": (end - start) * 1e3, "python": (python - start) * 1e3} | text.times_ms

    return compile_kernel


def forget():
    """Empty the memos of all functions of ours."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tlx_xdsl"):
            for value in vars(module).values():
                getattr(value, "cache_clear", lambda: None)()


def stock(name):
    """Return the function that has stock Triton compile a kernel anew and gives the total in ms."""
    import importlib

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module = importlib.import_module("stock_attention")

    def compile_kernel():
        kernel = importlib.reload(module)
        start = time.perf_counter()
        signature = kernel.SIGNATURES[name] | dict.fromkeys(kernel.CONSTEXPRS, "constexpr")
        source = ASTSource(getattr(kernel, name), signature, kernel.CONSTEXPRS)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=kernel.OPTIONS)
        end = time.perf_counter()
        assert compiled.asm["cubin"]
        return {"total": (end - start) * 1e3}

    return compile_kernel


def in_empty_cache(function):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        return function()


OURS = {
    "ours, stock's structure": f"{HERE / 'tlx_attention.py'}:attention",
    "ours, the example": f"{ROOT / 'examples' / 'hopper_attention_ws.py'}:attention",
}
STOCK = {"stock, descriptors": "of_descriptors", "stock, pointers": "of_pointers"}
SIDES = [*STOCK, *OURS]


def serve(side):
    """Compile once for each line that arrives."""
    compile_once = stock(STOCK[side]) if side in STOCK else ours(OURS[side])
    in_empty_cache(compile_once)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(in_empty_cache(compile_once)), flush=True)


class Side:
    """A process that compiles one side's kernel when asked."""

    def __init__(self, name):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve)
        return
    sides = {name: Side(name) for name in SIDES}
    rounds = [{name: side.round() for name, side in sides.items()} for _ in range(args.runs)]
    for side in sides.values():
        side.process.stdin.close()
        side.process.wait()

    def median(name, what):
        return statistics.median(one[name].get(what, 0.0) for one in rounds)

    from tlx_xdsl.backend import installed_triton_version

    print(f"stock Triton {installed_triton_version()}, cold compiles to a cubin for sm_90a, medians of {args.runs}, ms")
    for name in STOCK:
        print(f"    {name:<32}{median(name, 'total'):8.0f}")
    for name in OURS:
        total, python = median(name, "total"), median(name, "python")
        ratios = ", ".join(f"{total / median(rival, 'total'):.2f} of '{rival}'" for rival in STOCK)
        print(f"    {name:<32}{total:8.0f}   {ratios}")
        print(f"    {'    of it frontend to text':<32}{python:8.0f}   {python / total:.1%}")
        stages = {stage: median(name, stage) for stage in rounds[0][name] if stage not in ("total", "python")}
        main = {stage: stages.pop(stage) for stage in ("frontend", "verify", "print")}
        parts = (main | {f"{len(stages)} passes": sum(stages.values())}).items()
        print(f"        {', '.join(f'{stage} {ms:.0f}' for stage, ms in parts)}")


if __name__ == "__main__":
    main()
