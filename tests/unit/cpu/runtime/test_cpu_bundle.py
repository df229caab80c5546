"""Kernels for CPUs from C: what is written compiles strictly, links with libm alone, and computes what numpy does."""

# covers: target.cpu, tlx compile

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.codegen.emulated import commands, missing
from tlx_xdsl.cpu.bundle.launcher import c_string
from tlx_xdsl.cpu.bundle.write import BUNDLED, write_cpu_bundle
from tlx_xdsl.cpu.codegen.host import NATIVE, host, named_host
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.runtime import BundleError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("g++") is None, reason="no gcc and g++")

on_x86 = pytest.mark.skipif(
    not host().triple.startswith("x86_64") or not host().has("avx2"), reason="the CPU has no AVX2"
)

STRICT = {"c": ["gcc", "-std=c99"], "c++": ["g++", "-std=c++11", "-x", "c++"]}


def compile_c(*sources, output, language="c", flags=("-shared", "-fPIC")):
    """Compile C strictly and link it, with objects, to a shared library or a program."""
    code = [str(each) for each in sources if each.suffix == ".c"]
    objects = [str(each) for each in sources if each.suffix != ".c"]
    command = [*STRICT[language], "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *code, "-x", "none", *objects]
    subprocess.run([*command, *flags, "-lm", "-o", str(output)], check=True)
    return output


def linked(folder, **options):
    """The library of a bundle's files."""
    name = folder.name
    library = ctypes.CDLL(
        str(compile_c(folder / f"{name}.c", folder / f"{name}.o", output=folder / "lib.so", **options))
    )
    getattr(library, f"{name}_error").restype = ctypes.c_char_p
    return library


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


@tlx_xdsl.jit
def axpy(x, y, out, n, a, BLOCK: tl.constexpr = 64):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    tl.store(out + index, a * tl.load(x + index, mask=inside) + tl.load(y + index, mask=inside), mask=inside)


AXPY = {"out": "*fp32:16", "n": "i32", "a": "fp32", "x": "*kfp32", "y": "*fp32"}
"""Not in the order of the parameters."""


@pytest.fixture(scope="module")
def axpy_folder(tmp_path_factory):
    return write_cpu_bundle(tmp_path_factory.mktemp("shared"), axpy, AXPY)


@pytest.fixture(scope="module")
def axpy_library(axpy_folder):
    return linked(axpy_folder)


def launch_axpy(library, grid=(3, 1, 1), n=150, name="axpy"):
    """Return the launch's status, and whether it has computed what numpy does."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, n), np.float32)
    out = np.zeros(n + 4, np.float32)
    status = getattr(library, f"{name}_launch")(
        *map(ctypes.c_uint32, grid),
        address(x),
        address(y),
        address(out[-out.ctypes.data // 4 % 4 :]),
        n,
        ctypes.c_float(2),
    )
    at = -out.ctypes.data // 4 % 4
    return status, np.array_equal(out[at : at + n], np.float32(2) * x + y)


# --- launches --------------------------------------------------------------------------------------------------------


def test_a_launch_from_c_computes_what_numpy_does(axpy_library, axpy_folder):
    assert {path.name for path in axpy_folder.iterdir()} == {*(f"axpy.{end}" for end in BUNDLED), "lib.so"}
    assert launch_axpy(axpy_library) == (0, True)
    assert launch_axpy(axpy_library, grid=(0, 5, 1)) == (0, False)


def test_what_a_launch_refuses(axpy_library):
    library = axpy_library
    big = launch_axpy(library, grid=(1 << 31, 1, 1))[0]
    assert big == launch_axpy(library, grid=((1 << 31) - 1, (1 << 31) - 1, 3))[0] < 0
    assert b"2147483647" in library.axpy_error(big)
    nothing = ctypes.c_void_p(8)
    status = library.axpy_launch(1, 1, 1, nothing, nothing, nothing, 0, ctypes.c_float(2))
    assert library.axpy_error(status) == b"'out': the kernel was compiled for multiples of 16"
    assert library.axpy_error(0) == b"no error"
    assert library.axpy_error(99) == library.axpy_error(-99) == b"an unknown error"


def test_another_cpu_is_refused(tmp_path):
    if not host().triple.startswith("x86_64"):
        pytest.skip("the launcher knows the instructions of x86-64 alone")
    folder = write_cpu_bundle(tmp_path, axpy, AXPY, cpu="x86-64-v2")
    library = linked(folder, flags=("-shared", "-fPIC", "-D__builtin_cpu_supports(x)=0"))
    status, _ = launch_axpy(library)
    assert library.axpy_error(status).startswith(b"the kernel was compiled for x86-64-v2, which has instructions")


class Programs(ctypes.Structure):
    """`struct axpy_programs`."""

    _fields_ = (
        ("next", ctypes.c_int64), ("total", ctypes.c_int64), ("chunk", ctypes.c_int64), ("grid", ctypes.c_int32 * 3),
        ("status", ctypes.c_int32), ("failed", ctypes.c_int64), ("arguments", ctypes.c_uint64 * 64),
    )  # fmt: skip


def test_threads_share_a_launch(axpy_library):
    library = axpy_library
    n = 100_000
    x, y, out = np.ones(n, np.float32), np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    assert out.ctypes.data % 16 == 0
    programs, found = Programs(), []
    grid = (-(-n // 64), 1, 1)
    prepared = library.axpy_prepare(
        ctypes.byref(programs), *grid, address(x), address(y), address(out), n, ctypes.c_float(3)
    )
    assert (prepared, programs.total, list(programs.grid)) == (0, grid[0], list(grid))
    assert 1 <= programs.chunk < grid[0] / 64
    threads = [
        threading.Thread(target=lambda: found.append(library.axpy_work(ctypes.byref(programs)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 4
    np.testing.assert_array_equal(out, 3 * x + y)


@tlx_xdsl.jit
def scalars(out, a, b, c, d, e, f, g, h, i):
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))
    tl.store(out + 5, f)
    tl.store(out + 6, g.to(tl.float64))
    tl.store(out + 7, h.to(tl.float64))
    tl.store(out + 8, i.to(tl.float64))


def test_every_type_of_number(tmp_path):
    types = ("*fp64", "i8", "u16", "i64", "fp16", "bf16", "fp64", "i1", "u64", "fp8e5")
    folder = write_cpu_bundle(tmp_path, scalars, dict(zip(("out", *"abcdefghi"), types, strict=True)))
    header = (folder / "scalars.h").read_text()
    declared = (
        "double *out, int8_t a, uint16_t b, int64_t c, uint16_t d, uint16_t e, double f, bool g, uint64_t h, uint8_t i"
    )
    assert ",\n    ".join(declared.split(", ")) in header
    assert " *   d: fp16, as its bits" in header
    library = linked(folder)
    out = np.zeros(9)
    floats = ((np.float16, 1.5), (ml_dtypes.bfloat16, -3.0), (ml_dtypes.float8_e5m2, 0.75))
    half, brain, eight = (int(np.asarray(value, type_).view(f"u{np.dtype(type_).itemsize}")) for type_, value in floats)
    status = library.scalars_launch(
        1, 1, 1, address(out), ctypes.c_int8(-7), ctypes.c_uint16(65000), ctypes.c_int64(-(1 << 40)),
        ctypes.c_uint16(half), ctypes.c_uint16(brain), ctypes.c_double(0.1), ctypes.c_bool(True),
        ctypes.c_uint64(1 << 63), ctypes.c_uint8(eight),
    )  # fmt: skip
    assert status == 0
    assert out.tolist() == [-7, 65000, -(2.0**40), 1.5, -3, 0.1, 1, 2.0**63, 0.75]


@tlx_xdsl.jit
def transposed(source, target):
    row, column = tl.program_id(0) * 8, tl.program_id(1) * 8
    target.store([column, row], source.load([row, column]).T)


def test_tensor_descriptors_are_an_address_shape_and_strides(tmp_path):
    types = {"source": "tensordesc<fp32[8, 8]>", "target": "tensordesc<fp32[8, 8]>"}
    library = linked(write_cpu_bundle(tmp_path, transposed, types))
    wide = np.random.default_rng(1).standard_normal((20, 32), np.float32)
    out = np.zeros((24, 20), np.float32)
    shapes, strides = (
        ((ctypes.c_int32 * 2)(20, 24), (ctypes.c_int32 * 2)(24, 20)),
        ((ctypes.c_int64 * 2)(32, 1), (ctypes.c_int64 * 2)(20, 1)),
    )
    assert (
        library.transposed_launch(3, 3, 1, address(wide), shapes[0], strides[0], address(out), shapes[1], strides[1])
        == 0
    )
    np.testing.assert_array_equal(out, wide[:, :24].T)


# --- errors of the kernel --------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def guarded(x, n):
    index = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.device_assert(index < n, 'a "row" too many?')
    tl.store(x + index, 1.0)


def test_checked_accesses_and_assertions(tmp_path):
    folder = write_cpu_bundle(tmp_path, guarded, {"x": "*fp32", "n": "i32"}, checks=True)
    assert "float *x, size_t x_bytes,\n    int32_t n" in (folder / "guarded.h").read_text()
    library = linked(folder)
    x = np.zeros(64, np.float32)
    launch = lambda grid, size, n: library.guarded_launch(grid, 1, 1, address(x), ctypes.c_size_t(size), n)  # noqa: E731
    assert launch(2, 128, 64) == 0
    assert x.tolist() == [1.0] * 32 + [0.0] * 32
    line = guarded.source.fn.__code__.co_firstlineno
    outside = library.guarded_error(launch(3, 191, 64)).decode()
    assert outside.startswith(f"{Path(__file__).name}:{line + 4}:5: ")
    assert "outside" in outside
    assert x.tolist() == [1.0] * 32 + [0.0] * 32
    failed = library.guarded_error(launch(4, 256, 40)).decode()
    assert failed == f'{Path(__file__).name}:{line + 3}:5: assertion failed: a "row" too many?'
    programs = Programs()
    library.guarded_prepare(ctypes.byref(programs), 4, 1, 1, address(x), ctypes.c_size_t(256), 40)
    assert library.guarded_work(ctypes.byref(programs)) == programs.status > 0
    assert programs.failed == 2


def test_texts_as_literals_of_c():
    assert c_string('a "b"\\\n??/ü') == r'"a \"b\"\\\012\?\?/\303\274"'


# --- printing and linking --------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def shown(x, n):
    tl.device_print("x", tl.load(x + tl.arange(0, 2)))
    tl.device_print("n", n)


PROGRAM = """\
#include "shown.h"
#include "again.h"
int main(void)
{
    float x[2] = {0.5f, -3.0f};
    double y[2] = {1e10, 0.1};
    return shown_launch(1, 1, 1, x, -7) | again_launch(1, 1, 1, y, 18446744073709551615u);
}
"""


def test_two_kernels_that_print_are_linked_into_one_program(tmp_path):
    folders = [
        write_cpu_bundle(tmp_path, shown, {"x": "*fp32", "n": "i32"}),
        write_cpu_bundle(tmp_path, shown, {"x": "*fp64", "n": "u64"}, name="again"),
    ]
    (tmp_path / "main.c").write_text(PROGRAM)
    files = [path for folder in folders for path in folder.iterdir() if path.suffix in (".c", ".o")]
    program = compile_c(
        tmp_path / "main.c", *files, output=tmp_path / "main", flags=[f"-I{folder}" for folder in folders]
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.5", "-3", "-7", "10000000000", "0.10000000000000001", "18446744073709551615"]


@tlx_xdsl.jit
def mathematics(x, y, BLOCK: tl.constexpr = 64):
    index = tl.arange(0, BLOCK)
    value = tl.load(x + index).to(tl.float32)
    value = tl.exp(value) + tl.sin(value) + tl.erf(value) + tl.floor(value) + tl.fma(value, value, value)
    tl.store(y + index, value.to(tl.float16))


LIBRARY = {"memcpy", "memset", "memmove", "memcmp", "_GLOBAL_OFFSET_TABLE_"}
"""What compilers take for granted beside the functions of libm."""


@pytest.mark.skipif(shutil.which("nm") is None or sys.platform != "linux", reason="there is no nm")
@pytest.mark.parametrize("cpu", [NATIVE, "x86-64"])
def test_an_object_needs_the_c_library_and_its_mathematics_alone(tmp_path, cpu):
    if cpu != NATIVE and not host().triple.startswith("x86_64"):
        pytest.skip("the CPU is no x86-64")
    folder = write_cpu_bundle(tmp_path, mathematics, {"x": "*fp16", "y": "*fp16"}, cpu=cpu)
    listed = subprocess.run(["nm", "-u", folder / "mathematics.o"], capture_output=True, text=True, check=True).stdout
    libm = ctypes.CDLL("libm.so.6")
    missing = [name for name in listed.split()[1::2] if name not in LIBRARY and not hasattr(libm, name)]
    assert not missing
    library = linked(folder)
    x = np.linspace(-4, 4, 64).astype(np.float16)
    y = np.zeros(64, np.float16)
    assert library.mathematics_launch(1, 1, 1, address(x), address(y)) == 0
    wide = x.astype(np.float64)
    from math import erf

    expected = (
        np.exp(wide) + np.sin(wide) + np.array([erf(each) for each in wide]) + np.floor(wide) + wide * wide + wide
    )
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=1e-3, atol=1e-3)


@on_x86
@pytest.mark.parametrize(("cpu", "wide", "wider"), [("x86-64", "xmm", "ymm"), ("x86-64-v3", "ymm", "zmm")])
def test_a_kernel_for_many_cpus(tmp_path, cpu, wide, wider):
    from tlx_xdsl.cpu.runtime.build import CpuSpecialization, compile_stages

    made = compile_stages(axpy.source, CpuSpecialization(AXPY), named_host(cpu))
    assert f"%{wide}" in made.assembly
    assert f"%{wider}" not in made.assembly
    folder = write_cpu_bundle(tmp_path, axpy, AXPY, cpu=cpu, name="wide_axpy")
    assert launch_axpy(linked(folder), name="wide_axpy") == (0, True)
    known = json.loads((folder / "wide_axpy.json").read_text())
    assert (known["cpu"], known["symbol"], known["constants"]) == (cpu, "wide_axpy_run", {"BLOCK": 64})
    assert next(iter(known["signature"].items())) == ("x", "*kfp32")
    assert ("avx2" in known["features"]) == (cpu == "x86-64-v3")


# --- names and refusals ----------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def awkward(register, programs, memcpy, awkward_work, x, x_bytes, größe, gridX, class_):
    at = programs + memcpy + awkward_work + x_bytes + größe + gridX + class_
    tl.store(x + tl.arange(0, 1), register + at)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_awkward_names_compile(tmp_path, language):
    names = [each.name for each in awkward.source.parameters]
    types = dict.fromkeys(names, "i32") | {"x": "*i32"}
    library = linked(write_cpu_bundle(tmp_path, awkward, types, checks=True), language=language)
    x = np.zeros(1, np.int32)
    given = [(address(x), ctypes.c_size_t(4)) if name == "x" else (1 << at,) for at, name in enumerate(names)]
    assert library.awkward_launch(1, 1, 1, *(value for each in given for value in each)) == 0
    assert x[0] == sum(1 << at for at, name in enumerate(names) if name != "x")


def test_what_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(CompilationError, match="identifier of C, found 'an axpy'"):
        write_cpu_bundle(tmp_path, axpy, AXPY, name="an axpy")
    with pytest.raises(CompilationError, match="'x' is a tuple, which a bundle can't pass") as caught:
        write_cpu_bundle(tmp_path, axpy, AXPY | {"x": "(*fp32, i32)"})
    assert caught.value.location is not None
    with pytest.raises(InputError, match="unknown CPU 'pentium', expected one of native"):
        write_cpu_bundle(tmp_path, axpy, AXPY, cpu="pentium")
    (tmp_path / "axpy").mkdir()
    (tmp_path / "axpy" / "manifest.json").write_text("{}")
    with pytest.raises(BundleError, match="a kernel for a GPU here"):
        write_cpu_bundle(tmp_path, axpy, AXPY)


_ON_SVE = """
#include "axpy.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    float *x = aligned_alloc(64, 640), *y = aligned_alloc(64, 640), *out = aligned_alloc(64, 640);
    for (int at = 0; at < 150; ++at)
        x[at] = at, y[at] = 1 + at, out[at] = -1;
    int status = axpy_launch(3, 1, 1, x, y, out, 150, 2.0f);
    for (int at = 0; at < 150 && !status; ++at)
        if (out[at] != 2 * x[at] + y[at])
            return 1;
    puts(status ? axpy_error(status) : "right");
    return 0;
}
"""


@pytest.mark.skipif(missing("linux-arm64-sve512") is not None, reason=str(missing("linux-arm64-sve512")))
@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("max,sve512=on", "right"),
        ("max,sve256=on", "the kernel was compiled for generic with SVE of 512 bits, which has instructions"),
        ("cortex-a57", "the kernel was compiled for generic with SVE of 512 bits, which has instructions"),
    ],
)
def test_code_for_sve_runs_where_registers_are_as_long(tmp_path, model, said):
    folder = write_cpu_bundle(tmp_path, axpy, AXPY, cpu="linux-arm64-sve512")
    (folder / "main.c").write_text(_ON_SVE)
    compiler, (emulator, *_) = commands("linux-arm64-sve512")
    for command in (
        [*compiler, "-Wall", "-Werror", "-static", "-o", "main", "main.c", "axpy.c", "axpy.o", "-lm"],
        [emulator, "-cpu", model, "./main"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said)
