"""Bundles for tests: made by hand, or of kernels; and their C code, compiled against a stand-in for libcuda.

`python -m tests.unit.runtime.bundle.bundles DIR` writes the bundles that `test_bundle_on_gpu.py` launches, for a
machine that has a GPU and no compiler: see docs/testing.md.
"""

import atexit
import ctypes
import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.runtime.bundle.manifest import BundleArgument, Manifest
from tlx_xdsl.runtime.launch.cuda_driver import SIGNATURES

HERE = Path(__file__).parent

CUBIN = b"\x7fELF\x00cubin"
"""What the fake driver takes for a binary."""

META = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [128, 64], "fp4_padded": False}

# --- made by hand ---------------------------------------------------------------------------------------------


def manifest(*arguments, **changes):
    """The manifest of a kernel `kernel` with these arguments, each (name, type) or (name, type, metadata)."""
    settings = {
        "name": "sample",
        "kernel": "kernel",
        "entry": "kernel",
        "target": "sm_90a",
        "arguments": [BundleArgument(*argument) for argument in arguments],
        "constants": {"BLOCK": 64},
        "num_warps": 4,
        "num_ctas": 1,
        "cluster": [1, 1, 1],
        "shared": 0,
        "tmem_columns": 0,
        "global_scratch_size": 0,
        "global_scratch_align": 1,
        "profile_scratch_size": 0,
        "profile_scratch_align": 1,
        "launch_pdl": False,
        "launch_cooperative_grid": False,
        "triton_version": "3.9.0",
        "tlx_xdsl_version": "0.1.0",
        "build": {},
    }
    return Manifest(**(settings | changes))


def sizes_of(described):
    """Bytes of each kernel parameter, counted independently of the launcher."""
    widths = {"i1": 1, "u1": 1, "fp16": 2, "bf16": 2, "fp32": 4, "f32": 4, "fp64": 8}
    widths |= {f"{sign}{width}": width // 8 for sign in "iu" for width in (8, 16, 32, 64)}
    sizes = []
    for argument in described.arguments:
        plain = argument.type.split(":")[0]
        if argument.descriptor is not None:
            rank = len(argument.descriptor["block_size"])
            sizes += [128, *[4] * rank, *[8] * rank]
        else:
            sizes.append(8 if plain.startswith("*") else widths[plain])
    return [*sizes, 8, 8]


# --- of kernels -----------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def add(x, y, out, n, scale, BLOCK: tl.constexpr = 1024):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    tl.store(out + index, tl.load(x + index, mask=inside) + scale * tl.load(y + index, mask=inside), mask=inside)


@tlx_xdsl.jit
def transposed(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Make the descriptors in the kernel: they lie in scratch memory."""
    source = tl.make_tensor_descriptor(x, [ROWS, COLUMNS], [COLUMNS, 1], [32, 32])
    target = tl.make_tensor_descriptor(out, [COLUMNS, ROWS], [ROWS, 1], [32, 32])
    row, column = tl.program_id(0) * 32, tl.program_id(1) * 32
    target.store([column, row], source.load([row, column]).T)


ADD = {"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "n": "i32", "scale": "fp32"}
EXAMPLE = HERE.parents[3] / "examples" / "hopper_gemm_ws.py"


def write_bundles(folder):
    """Write the bundles of the tests on a GPU; they are for Hopper."""
    from tlx_xdsl.runtime import write_bundle
    from tlx_xdsl.tools.launch_line.loading import load_kernel

    write_bundle(folder, add, ADD)
    write_bundle(folder, transposed, {"x": "*fp32:16", "out": "*fp32:16"}, {"ROWS": 64, "COLUMNS": 96})
    matmul, settings = load_kernel(f"{EXAMPLE}:matmul")
    write_bundle(folder, matmul, settings.signature, settings.constexprs)
    # A bundle that no Hopper GPU runs.
    write_bundle(folder, add, ADD, name="add_for_ampere", target="sm_80")
    if has_c_compiler() and cuda_include() is not None:
        for name in ("add", "transposed", "matmul"):
            compile_c([folder / name / f"{name}.c"], folder / f"{name}.so")
        _write_page(folder)


def _write_page(folder):
    """Write the bundle and the C program of docs/ship-a-kernel.md, linked with a library that stands for libcuda."""
    from tlx_xdsl.tools.tlx import main

    (folder / "axpy.py").write_text(page_blocks("python")[0])
    assert main(["compile", f"{folder / 'axpy.py'}:axpy", "--bundle", str(folder), "-q"]) == 0
    with tempfile.TemporaryDirectory() as elsewhere:
        compile_page_s_program(folder / "axpy", Path(elsewhere)).rename(folder / "ship_a_kernel")


def compile_page_s_program(bundle, folder):
    """Compile the C program of the page in `folder`, with a `libcuda.so.1` there that stands for the driver."""
    (folder / "main.c").write_text(page_blocks("c")[0])
    library = folder / "libcuda.so.1"
    compile_c([HERE / "fake_gpu.c"], library, "-std=c11", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    linked = (f"-I{bundle}", "-x", "none", str(library))
    return compile_c([folder / "main.c", bundle / "axpy.c"], folder / "main", *linked)


def page_blocks(language):
    """The texts between fences of docs/ship-a-kernel.md."""
    page = (HERE.parents[3] / "docs" / "ship-a-kernel.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


# --- their C code ---------------------------------------------------------------------------------------------


def has_c_compiler():
    return shutil.which("gcc") is not None and shutil.which("g++") is not None


def cuda_include():
    """The folder of a `cuda.h`: stock Triton's wheel carries one."""
    spec = importlib.util.find_spec("triton")
    candidates = [
        Path(place) / "backends/nvidia/include" for place in (spec.submodule_search_locations if spec else ())
    ]
    candidates.append(Path("/usr/local/cuda/include"))
    return next((each for each in candidates if (each / "cuda.h").is_file()), None)


def compile_c(sources, output, *flags, language="c"):
    """Compile C to a shared library (or, with flags, to something else) as strictly as the documents say."""
    command = ["gcc", "-std=c99"] if language == "c" else ["g++", "-std=c++11", "-x", "c++"]
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-isystem", str(cuda_include())]
    kind = flags or ("-shared", "-fPIC", "-fvisibility=default")
    subprocess.run([*command, *strict, *map(str, sources), *kind, "-o", str(output)], check=True)
    return output


@functools.cache
def _fake_libcuda():
    """The library, compiled once; what the last test has set in it goes with the next one's."""
    library = Path(tempfile.mkdtemp(prefix="tlx-fake-libcuda-")) / "libcuda.so.1"
    atexit.register(shutil.rmtree, library.parent, ignore_errors=True)
    return compile_c([HERE / "fake_libcuda.c"], library, "-shared", "-fPIC", "-Wno-pedantic", f"-Wl,-soname,{library}")


class CProgram:
    """The C launcher of the bundle in a folder, linked with a fake libcuda that hands its calls to a `FakeCuda`."""

    def __init__(self, folder, cuda, described, *, language="c"):
        self.described = described
        self.name = described.name
        library = _fake_libcuda()
        source = folder / f"{self.name}.c"
        flags = ("-shared", "-fPIC", "-x", "none", str(library))
        self.library = ctypes.CDLL(str(compile_c([source], folder / "launcher.so", *flags, language=language)))
        driver = ctypes.CDLL(str(library))
        self._keep = [driver]
        for entry, signature in (SIGNATURES | OTHERS).items():
            setter = getattr(driver, f"set_{entry}", None)
            if setter is not None:
                handler = ctypes.CFUNCTYPE(ctypes.c_int, *signature)(functools.partial(cuda._dispatch, entry))
                self._keep.append(handler)
                setter(handler)
        getattr(self.library, f"{self.name}_message").restype = ctypes.c_char_p

    def load(self):
        return getattr(self.library, f"{self.name}_load")()

    def unload(self):
        return getattr(self.library, f"{self.name}_unload")()

    def message(self):
        return getattr(self.library, f"{self.name}_message")().decode()

    def launch(self, grid, *args, stream=0):
        """Launch with what Python passes, taken apart: a descriptor is an address, a shape and strides."""
        given = [ctypes.c_void_p(stream), *(ctypes.c_uint(extent) for extent in grid)]
        for argument, value in zip(self.described.arguments, args, strict=True):
            given += _in_c(argument, value)
        return getattr(self.library, f"{self.name}_launch")(*given)


OTHERS = {
    "cuModuleUnload": (ctypes.c_void_p,),
    "cuMemAllocAsync": (ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t, ctypes.c_void_p),
    "cuMemFreeAsync": (ctypes.c_uint64, ctypes.c_void_p),
}
"""What only the C launcher calls."""

C_TYPES = {
    "i1": ctypes.c_bool,
    "u1": ctypes.c_bool,
    "fp16": ctypes.c_uint16,
    "bf16": ctypes.c_uint16,
    "fp32": ctypes.c_float,
    "f32": ctypes.c_float,
    "fp64": ctypes.c_double,
    **{f"i{width}": getattr(ctypes, f"c_int{width}") for width in (8, 16, 32, 64)},
    **{f"u{width}": getattr(ctypes, f"c_uint{width}") for width in (8, 16, 32, 64)},
}


def _in_c(argument, value):
    if argument.descriptor is not None:
        rank = len(value.shape)
        shape, strides = (ctypes.c_int32 * rank)(*value.shape), (ctypes.c_int64 * rank)(*value.strides)
        return [ctypes.c_void_p(value.base.data_ptr()), shape, strides]
    if argument.type.startswith("*"):
        return [ctypes.c_void_p(value.data_ptr() if hasattr(value, "data_ptr") else value)]
    return [C_TYPES[argument.type.split(":")[0]](value)]


if __name__ == "__main__":
    write_bundles(Path(sys.argv[1]))
