"""Time our interpreter beside stock Triton's (`TRITON_INTERPRET=1`), on the programs of `speed.py`.

    python benchmarks/interpreter/stock.py

Both run the plain kernels of `kernels.py`; ours runs the warp-specialised kernels of the examples with the
same tiles, too, which stock's can't. Prints processor seconds of one core (the best of three runs, compiling included)
and ratios of one run. Stock's interpreter runs in a process of its own, with stand-ins for torch's tensors.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np

CASES = {"GEMM 512 x 512 x 512, 128 x 128 x 64 tiles": "matmul", "attention 1 x 1024 x 64": "attention"}
ROUNDS = 3


def launch(name):
    """The grid, the arrays and the other arguments of a case, and what its last array is to hold."""
    random = np.random.default_rng(0)
    if name == "matmul":
        a, b = (random.standard_normal((512, 512)).astype(np.float16) for _ in range(2))
        arrays = {"a": a, "b": b, "c": np.zeros_like(a)}
        return (4, 4), arrays, {"K": 512, "N": 512, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, a @ b
    q, k, v = (random.standard_normal((1024, 64)).astype(np.float16) for _ in range(3))
    scores = np.exp(q.astype(np.float32) @ k.astype(np.float32).T / 8)
    expected = scores / scores.sum(1, keepdims=True) @ v.astype(np.float32)
    arrays = {"q": q, "k": k, "v": v, "o": np.zeros_like(q)}
    return (8,), arrays, {"scale": 0.125, "LENGTH": 1024, "DIM": 64, "BLOCK_M": 128, "BLOCK_N": 64}, expected


def seconds(run, result, expected):
    """Processor seconds of the best of three runs; the result must be right."""
    best = float("inf")
    for _ in range(ROUNDS):
        result[...] = 0
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
        error = np.abs(result.astype(np.float32) - expected.astype(np.float32)).max()
        assert error <= 2e-2 * np.abs(expected).max(), f"the largest error is {error}"
    return best


def stock(name):
    """The same in stock's interpreter, in this process."""
    from tests.unit.interpreter.library.stock_side import Tensor

    text = (Path(__file__).parent / "kernels.py").read_text()
    text = text.replace("import tlx_xdsl as triton\n", "import triton\n")
    text = text.replace("import tlx_xdsl.language as tl", "import triton.language as tl")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stock_kernels.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("stock_kernels", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        grid, arrays, named, expected = launch(name)
        tensors = {key: Tensor(array) for key, array in arrays.items()}
        kernel = getattr(module, name)
        return seconds(lambda: kernel[grid](**tensors, **named), [*arrays.values()][-1], expected)


def ours(name):
    """The same in ours."""
    import tlx_xdsl
    from benchmarks.interpreter import kernels

    grid, arrays, named, expected = launch(name)
    kernel = getattr(kernels, name)

    def run():
        tlx_xdsl.interpret(kernel, grid, **arrays, **named, options={"jobs": 1})

    return seconds(run, [*arrays.values()][-1], expected)


def specialised(name):
    """A warp-specialised kernel of the same tiles in ours."""
    from tests.gallery.synchronisation.example_runs import attention, gemm

    if name == "matmul":
        case = gemm("hopper_gemm_ws.py", 512, 512, 512, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64)
    else:
        case = attention("hopper_attention_ws.py", 1, 1024, head_dim=64)
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        case.run(stage="frontend", jobs=1)
        best = min(best, time.process_time() - start)
    return best


def of_stock(name):
    """The same in stock's interpreter, in a process of its own."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    child = [sys.executable, __file__, name]
    done = subprocess.run(child, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"stock's interpreter: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    if len(sys.argv) > 1:
        print(json.dumps(stock(sys.argv[1])))
        return
    for title, name in CASES.items():
        theirs, plain, tasks = of_stock(name), ours(name), specialised(name)
        print(f"{title}: stock {theirs:.3f} s; ours {plain:.3f} s, {theirs / plain:.2f} x as fast; ", end="")
        print(f"warp-specialised {tasks:.3f} s, {theirs / tasks:.2f} x")


if __name__ == "__main__":
    main()
