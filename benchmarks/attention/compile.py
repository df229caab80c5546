"""Cold compiles of attention to a cubin: ours against stock Triton's, stage by stage.

    python benchmarks/attention/compile.py [--runs 5]

All kernels have the same tile, head dimension and pipeline depth (stock.py, ours.py). Ours is
measured twice: the example, whose code stands in the binary twice (once for each consumer), and a kernel of stock's
structure. Each kernel has one process, with everything imported and one compile before, because the first one of a
process sets up LLVM. A round loads the kernel's file anew, empties the memos of our functions and the cache folder, and
goes from the Python function to the cubin. The kernels take turns. Times are CPU time, of the process and of ptxas,
which a busy machine changes little. What two passes of the lowering to LLVM IR take is measured apart
(compile/region_passes.py).
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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.compile.region_passes import cpu_ms, region_times

STAGES = {
    "frontend": "Python to TTIR; ours: to TTGIR",
    "ttgir": "stock passes on TTGIR",
    "llir": "to LLVM IR, optimised",
    "ptx": "to PTX",
    "cubin": "ptxas",
}


class StageClock:
    """Notes the CPU time of stock Triton's stages, whoever runs them."""

    def __init__(self):
        from triton import knobs

        self.noted = {}
        knobs.runtime.add_stages_inspection_hook = self._install

    def _install(self, backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return "stages", "timed"  # How stock Triton asks for the hook's part of its cache key.
        for name, stage in list(stages.items()):
            stages[name] = self._timed(name, stage)
        return None

    def _timed(self, name, stage):
        def run(source, metadata):
            start = cpu_ms()
            product = stage(source, metadata)
            self.noted[name] = cpu_ms() - start
            if isinstance(product, str):
                self.noted[f"{name} lines"] = product.count("\n")
            return product

        return run

    def measure(self, prepare):
        """Compile in an empty cache what `prepare` loads; return the times in ms, and the lines of what was made."""
        compile_kernel = prepare()
        self.noted.clear()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            start, wall = cpu_ms(), time.perf_counter()
            own = compile_kernel()
            result = {"total": cpu_ms() - start, "wall": (time.perf_counter() - wall) * 1e3} | self.noted | own
        lowered = result["llir"] + result["ptx"] + result["cubin"]
        if "frontend" in result:
            result["ttgir"] = result["total"] - lowered - result["frontend"]
        else:
            result["ttgir"] += result.pop("ttir")
            result["frontend"] = result["total"] - lowered - result["ttgir"]
        return result


def ours(spec):
    """Return the function that loads a kernel of ours anew, which returns the one that compiles it."""
    from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version
    from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
    from tlx_xdsl.tools.launch_line.loading import load_kernel

    def prepare():
        forget()
        kernel, defaults = load_kernel(spec)

        def compile_kernel():
            start = cpu_ms()
            wanted = Specialization(defaults.signature, defaults.constexprs)
            text = compile_text(kernel.source, wanted, triton_version=installed_triton_version(), keep_ttir=False)
            frontend = cpu_ms() - start
            result = compile_ttgir(text.ttgir, BackendOptions(), isolation="none")
            assert result.cubin
            return {"frontend": frontend, "parts": text.times_ms, "text": result.ttgir}

        return compile_kernel

    return prepare


def forget():
    """Empty the memos of all functions of ours."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tlx_xdsl"):
            for value in vars(module).values():
                getattr(value, "cache_clear", lambda: None)()


def stock(name):
    """Return the function that loads a kernel of stock Triton's anew, which returns the one that compiles it."""
    import importlib

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module = importlib.import_module("benchmarks.attention.stock")

    def prepare():
        kernel = importlib.reload(module)

        def compile_kernel():
            signature = kernel.SIGNATURES[name] | dict.fromkeys(kernel.CONSTEXPRS, "constexpr")
            source = ASTSource(getattr(kernel, name), signature, kernel.CONSTEXPRS)
            options = kernel.OPTIONS | {"enable_fp_fusion": True}  # The default, of which 3.9 warns.
            compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
            assert compiled.asm["cubin"]
            return {"text": compiled.asm["ttgir"]}

        return compile_kernel

    return prepare


OURS = {
    "ours, stock's structure": f"{ROOT / 'benchmarks' / 'attention' / 'ours.py'}:attention",
    "ours, the example": f"{ROOT / 'examples' / 'hopper_attention_ws.py'}:attention",
}
STOCK = {"stock, descriptors": "of_descriptors", "stock, pointers": "of_pointers"}
SIDES = [*STOCK, *OURS]
READY = "ready"


def serve(side):
    """Compile once for each line that arrives."""
    clock = StageClock()
    prepare = stock(STOCK[side]) if side in STOCK else ours(OURS[side])
    clock.measure(prepare)
    print(READY, flush=True)
    for _ in sys.stdin:
        result = clock.measure(prepare)
        result["regions"] = sum(region_times(result.pop("text")).values())
        print(json.dumps(result), flush=True)


class Side:
    """A process that compiles one side's kernel when asked."""

    def __init__(self, name):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline().strip() == READY

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


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
        side.close()
    report(rounds)


def report(rounds):
    """Print the medians over the rounds."""
    from tlx_xdsl.backend import installed_triton_version

    def median(name, what):
        return statistics.median(one[name].get(what, 0.0) for one in rounds)

    def row(title, cells):
        print(f"    {title:<36}" + "".join(f"{cell:>26}" for cell in cells))

    version = installed_triton_version()
    print(f"stock Triton {version}, cold compiles to a cubin for sm_90a, medians of {len(rounds)}, CPU ms")
    row("", SIDES)
    for stage, title in STAGES.items():
        row(title, [f"{median(name, stage):.0f}" for name in SIDES])
        if stage == "llir":
            row("  of it, which bytes are touched", [f"{median(name, 'regions'):.0f}" for name in SIDES])
    row("all", [f"{median(name, 'total'):.0f}" for name in SIDES])
    for rival in STOCK:
        row(f"  to '{rival}'", [f"{median(name, 'total') / median(rival, 'total'):.2f}" for name in SIDES])
    row("all, by the clock on the wall", [f"{median(name, 'wall'):.0f}" for name in SIDES])
    for product in ("llir", "ptx"):
        row(f"lines of {product}", [f"{median(name, f'{product} lines'):.0f}" for name in SIDES])
    for name in OURS:
        parts = {
            part: statistics.median(one[name]["parts"][part] for one in rounds) for part in rounds[0][name]["parts"]
        }
        own = sum(parts.values())
        ends = {part: parts.pop(part) for part in ("frontend", "verify", "print")}
        steps = (ends | {f"{len(parts)} passes": sum(parts.values())}).items()
        share = median(name, "frontend") / median(name, "total")
        print(f"    Python in '{name}': {share:.1%}; of it {', '.join(f'{step} {ms / own:.0%}' for step, ms in steps)}")


if __name__ == "__main__":
    main()
