"""Launches the bundles of `bundles.py` on a Hopper GPU, in a process that can't import Triton, xDSL or the compiler.

`python -m tests.unit.runtime.bundle.launch_bundles DIR` needs torch for the tensors and the references, nothing else
of what compiling needs. It prints a line for each check and ends with an error for the first that fails.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

MISSING = ("triton", "xdsl", "ml_dtypes", "tlx_xdsl.frontend", "tlx_xdsl.transforms", "tlx_xdsl.backend")
"""What is not on a machine without a compiler: importing it, or anything in it, fails."""


def refusal(runtime, call):
    """Return the message with which a call is refused."""
    try:
        call()
    except runtime.BundleError as error:
        return str(error)
    return "nothing was refused"


def check_add(folder, torch, runtime):
    """Plain Triton: pointers that are multiples of 16, a scalar of either kind, a default that was compiled in."""
    kernel = runtime.load(folder, "add")
    n, block = 100_000, kernel.manifest.constants["BLOCK"]
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.full_like(x, float("nan"))
    kernel(-(-n // block), x, y, out, scale=0.5, n=n)
    torch.testing.assert_close(out, x + 0.5 * y)
    assert "multiple of 16" in refusal(runtime, lambda: kernel(1, x, y[1:], out, n - 1, 1.0))


def check_transposed(folder, torch, runtime):
    """Descriptors that the kernel makes, in scratch memory."""
    x = torch.arange(64 * 96, device="cuda", dtype=torch.float32).reshape(64, 96)
    out = torch.full((96, 64), float("nan"), device="cuda")
    runtime.load(folder, "transposed")((2, 3), x, out)
    assert torch.equal(out, x.T)


def check_matmul(folder, torch, runtime):
    """The warp-specialised GEMM of the examples, bound once and launched twice, also where no tile is whole."""
    kernel = runtime.load(folder, "matmul")
    tile = kernel.manifest.constants
    for m, n, k in ((1024, 768, 512), (1000, 1304, 712)):
        a, b, c = gemm_operands(torch, m, n, k)
        boxes = (tile["BLOCK_M"] // 2, tile["BLOCK_K"]), (tile["BLOCK_K"], tile["BLOCK_N"])
        boxes = (*boxes, (tile["BLOCK_M"] // 2, tile["BLOCK_N"]))
        descriptors = [
            runtime.TensorDescriptor.from_tensor(tensor, box) for tensor, box in zip((a, b, c), boxes, strict=True)
        ]
        grid = -(-m // tile["BLOCK_M"]) * -(-n // tile["BLOCK_N"])
        run = kernel.bind(grid, *descriptors, m, n, k)
        run()
        check_product(torch, a, b, c)
        c.fill_(float("nan"))
        run()
        check_product(torch, a, b, c)


def gemm_operands(torch, m, n, k):
    torch.manual_seed(0)
    a = torch.randn((m, k), device="cuda", dtype=torch.float16)
    b = torch.randn((k, n), device="cuda", dtype=torch.float16)
    return a, b, torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)


def check_product(torch, a, b, c):
    expected = a.float() @ b.float()
    error = ((c.float() - expected).norm() / expected.norm()).item()
    assert error < 1e-3, f"relative error {error}"


def check_another_target(folder, torch, runtime):
    """A bundle for another GPU is refused before anything is loaded."""
    assert "is for sm_80" in refusal(runtime, lambda: runtime.load(folder, "add_for_ampere"))


def check_c_launchers(folder, torch, runtime):
    """The C code, where the one who wrote the bundles had a C compiler; torch's context is current here."""
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    x, y = torch.randn(100_000, device="cuda"), torch.randn(100_000, device="cuda")
    out = torch.full_like(x, float("nan"))
    library = _c_library(folder, "add")
    arguments = (*_grid(-(-x.numel() // 1024)), *map(_pointer, (x, y, out)), ctypes.c_int32(x.numel()))
    _succeed(library, "add", library.add_launch(*arguments, ctypes.c_float(0.5)))
    torch.testing.assert_close(out, x + 0.5 * y)

    library = _c_library(folder, "transposed")
    x = torch.arange(64 * 96, device="cuda", dtype=torch.float32).reshape(64, 96)
    out = torch.full((96, 64), float("nan"), device="cuda")
    _succeed(library, "transposed", library.transposed_launch(*_grid(2, 3), _pointer(x), _pointer(out)))
    assert torch.equal(out, x.T)

    library = _c_library(folder, "matmul")
    m, n, k = 1024, 768, 512
    operands = gemm_operands(torch, m, n, k)
    tensors = [part for tensor in operands for part in _tensor(tensor)]
    grid = _grid((m // 128) * (n // 256))
    _succeed(library, "matmul", library.matmul_launch(*grid, *tensors, *map(ctypes.c_int32, (m, n, k))))
    check_product(torch, *operands)
    _succeed(library, "matmul", library.matmul_unload())


def check_the_page_s_program(folder, torch, runtime):
    """The C program of docs/ship-a-kernel.md, as a process of its own."""
    done = subprocess.run([folder / "ship_a_kernel"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("largest error: 0\n", ""), done


def _c_library(folder, name):
    library = ctypes.CDLL(str(folder / f"{name}.so"))
    getattr(library, f"{name}_message").restype = ctypes.c_char_p
    _succeed(library, name, getattr(library, f"{name}_load")())
    return library


def _succeed(library, name, status):
    assert status == 0, f"{name}: CUresult {status}, {getattr(library, f'{name}_message')().decode()}"


def _grid(x, y=1, z=1):
    """The legacy default stream, which is torch's, and a grid."""
    return ctypes.c_void_p(0), ctypes.c_uint(x), ctypes.c_uint(y), ctypes.c_uint(z)


def _pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def _tensor(tensor):
    return _pointer(tensor), (ctypes.c_int32 * 2)(*tensor.shape), (ctypes.c_int64 * 2)(*tensor.stride())


def main(folder):
    assert not [name for name in MISSING if name in sys.modules]
    # How Python marks a module that is known not to be there.
    sys.modules.update(dict.fromkeys(MISSING))
    import torch

    from tlx_xdsl import runtime

    checks = [check_add, check_transposed, check_matmul, check_another_target]
    if (folder / "add.so").is_file():
        checks += [check_c_launchers, check_the_page_s_program]
    for check in checks:
        check(folder, torch, runtime)
        torch.cuda.synchronize()
        print(f"{check.__name__.removeprefix('check_')}: passed", flush=True)
    loaded = [name for name, module in sys.modules.items() if name.startswith(MISSING) and module is not None]
    assert not loaded, loaded


if __name__ == "__main__":
    main(Path(sys.argv[1]))
