"""Two different kernels compiled one after the other, and in two threads at the same time.

    python benchmarks/compile/parallel.py [--runs 5]

A compile goes from the Python source to the cubin, and nothing is cached. Both workers are warm. Each run measures
both ways in turn; the medians and their ratio are printed. On two idle cores the best ratio is the longer kernel's
share of the serial time.
"""

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version, start_worker
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KERNELS = ("hopper_attention_ws.py:attention", "hopper_attention_pingpong.py:attention")


def compile_example(kernel, defaults):
    specialization = Specialization(defaults.signature, defaults.constexprs)
    text = compile_text(kernel.source, specialization, triton_version=installed_triton_version())
    return compile_ttgir(text.ttgir, BackendOptions()).cubin


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    kernels = [load_kernel(str(EXAMPLES / kernel)) for kernel in KERNELS]
    start_worker(2)
    with ThreadPoolExecutor(2) as threads:

        def parallel():
            for job in [threads.submit(compile_example, *kernel) for kernel in kernels]:
                job.result()

        parallel()
        alone, together = [], []
        for _ in range(runs):
            alone.append([seconds(lambda k=kernel: compile_example(*k)) for kernel in kernels])
            together.append(seconds(parallel))
    serial = statistics.median(sum(times) for times in alone)
    print(f"stock Triton {installed_triton_version()}, medians of {runs}")
    for kernel, times in zip(KERNELS, zip(*alone, strict=True), strict=True):
        print(f"    {kernel:<44}{statistics.median(times):8.2f} s")
    print(f"    {'one after the other':<44}{serial:8.2f} s")
    both = statistics.median(together)
    print(f"    {'in two threads':<44}{both:8.2f} s, {both / serial:.2f} of it")


if __name__ == "__main__":
    main()
