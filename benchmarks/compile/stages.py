"""Compile time of the example GEMM: frontend, passes and printing, without and with verification; then the backend.

    python benchmarks/compile/stages.py [--runs 20]

Medians in one process after three warm-up runs. The backend's time is that of a warm worker.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hopper_gemm_ws.py"
WARM_UP = 3


def text_times(kernel, specialization, runs, *, verify):
    """Median total in ms, and the median per stage."""
    totals, stages = [], {}
    for run in range(WARM_UP + runs):
        start = time.perf_counter()
        compiled = compile_text(kernel.source, specialization, verify=verify)
        total = (time.perf_counter() - start) * 1e3
        if run < WARM_UP:
            continue
        totals.append(total)
        for stage, milliseconds in compiled.times_ms.items():
            stages.setdefault(stage, []).append(milliseconds)
    return statistics.median(totals), {stage: statistics.median(times) for stage, times in stages.items()}


def backend_time(kernel, specialization, runs):
    text = compile_text(kernel.source, specialization, triton_version=installed_triton_version())
    times = []
    for _ in range(1 + runs):
        start = time.perf_counter()
        compile_ttgir(text.ttgir, BackendOptions())
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    kernel, defaults = load_kernel(f"{EXAMPLE}:matmul")
    specialization = Specialization(defaults.signature, defaults.constexprs)
    plain, stages = text_times(kernel, specialization, runs, verify=False)
    verified, _ = text_times(kernel, specialization, runs, verify=True)
    print(f"frontend + passes + printing, median of {runs}: {plain:.1f} ms")
    for stage, milliseconds in stages.items():
        print(f"    {stage:<32}{milliseconds:8.1f}")
    print(f"the same with verification after every pass: {verified:.1f} ms ({verified / plain:.2f}x)")
    version = installed_triton_version()
    if version is None:
        print("the backend is not measured: stock Triton is not installed")
        return
    backend = backend_time(kernel, specialization, max(3, runs // 5))
    print(f"backend, stock Triton {version}, warm worker: {backend:.0f} ms ({backend / plain:.1f}x ours)")


if __name__ == "__main__":
    main()
