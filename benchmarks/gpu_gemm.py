"""The example GEMM against cuBLAS on the GPU: correctness on odd and even sizes, then speed.

    python benchmarks/gpu_gemm.py [--prebuilt LABEL=DIR ...] [--rounds 7]

`--prebuilt` adds a kernel that `tlx compile` wrote to DIR (its .cubin and .json), such as one made with another
Triton version than the one that is installed here.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import measure

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.runtime import Launcher

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "hopper_gemm_ws.py"
CORRECTNESS = ((512, 512, 512), (1000, 1304, 712), (4096, 4096, 4096), (8192, 8192, 8192))
SPEED = ((4096, 4096, 4096), (8192, 8192, 8192))
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
LIMIT = 1e-2


def load_example():
    spec = importlib.util.spec_from_file_location("hopper_gemm_ws", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prebuilt(folder):
    """The launcher of a kernel that `tlx compile` wrote, and the element type that it is for."""
    described = json.loads((Path(folder) / "matmul.json").read_text())
    launcher = Launcher(
        (Path(folder) / "matmul.cubin").read_bytes(),
        name=described["name"],
        arguments=list(described["arguments"].items()),
        num_warps=described["num_warps"],
        shared=described["shared"],
        tensordesc_meta=described["tensordesc_meta"],
    )
    dtype = "bf16" if "bf16" in described["arguments"]["a_desc"] else "fp16"
    return dtype, launcher


def inputs(m, n, k, dtype):
    generator = torch.Generator(device="cuda").manual_seed(m * 31 + n * 17 + k)
    a = torch.randn((m, k), device="cuda", dtype=torch.float32, generator=generator).to(dtype)
    b = torch.randn((k, n), device="cuda", dtype=torch.float32, generator=generator).to(dtype)
    return a, b, torch.full((m, n), float("nan"), device="cuda", dtype=dtype)


def check(example, label, kernel, dtype):
    for m, n, k in CORRECTNESS:
        a, b, c = inputs(m, n, k, DTYPES[dtype])
        launch = kernel(*example.launch_arguments(a, b, c))
        measure.watchdog_first_launch(launch, name=f"{label} {m}x{n}x{k}")
        error = measure.relative_error(c, a.float() @ b.float())
        print(f"  {label:<18} {m:5d} x {n:5d} x {k:5d}  relative error {error:.2e}", flush=True)
        if not error < LIMIT:
            raise SystemExit(f"{label}: the error is above {LIMIT}")


def time_kernels(example, kernels, dtype, rounds):
    for m, n, k in SPEED:
        a, b, c = inputs(m, n, k, DTYPES[dtype])
        out = torch.empty_like(c)
        candidates = {"cuBLAS": lambda a=a, b=b, out=out: torch.mm(a, b, out=out)}
        for label, kernel in kernels.items():
            candidates[label] = kernel(*example.launch_arguments(a, b, c))
        times = measure.cool_rounds(candidates, rounds=rounds)
        clock = measure.sm_clock_mhz()
        measure.print_table(
            f"{dtype} {m} x {n} x {k}, cool", times, flops=2 * m * n * k, peer="cuBLAS", clock_mhz=clock
        )
        hot = measure.hot_rounds(candidates)
        measure.print_table(f"{dtype} {m} x {n} x {k}, hot", hot, flops=2 * m * n * k, peer="cuBLAS")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prebuilt", action="append", default=[], metavar="LABEL=DIR")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stages", type=int, nargs="+", default=[3, 4])
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    example = load_example()
    kernels = {dtype: {} for dtype in DTYPES}
    for dtype in DTYPES:
        for stages in args.stages:
            label = f"{stages} stages, {installed_triton_version()}"
            constants = example.TLX_COMPILE["matmul"]["constexprs"] | {"NUM_STAGES": stages}
            kernels[dtype][label] = lambda grid, arguments, constants=constants: example.matmul.bind(
                grid, *arguments, **constants
            )
    for entry in args.prebuilt:
        label, _, folder = entry.partition("=")
        dtype, launcher = prebuilt(folder)
        kernels[dtype][label] = lambda grid, arguments, launcher=launcher: launcher.bind(grid, *arguments)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "Triton", installed_triton_version())
    for dtype, by_label in kernels.items():
        print(dtype)
        for label, kernel in by_label.items():
            check(example, label, kernel, dtype)
    for dtype, by_label in kernels.items():
        time_kernels(example, by_label, dtype, args.rounds)


if __name__ == "__main__":
    main()
