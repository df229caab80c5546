"""`kernel[grid](...)` on the CPU: what arguments mean, what is compiled anew, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.runtime import cpu_kernels as kernels
from tests.unit.cpu.runtime.cpu_kernels import Pair, jit
from tlx_xdsl.cpu.runtime import build, launch
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.driver import cache

pytestmark = pytest.mark.quick


@pytest.fixture
def builds(monkeypatch) -> list[str]:
    """The keys that were compiled or loaded since the test began."""
    seen: list[str] = []
    load = launch.load_program

    def counted(source: Any, wanted: Any, key: str) -> Any:
        seen.append(key)
        return load(source, wanted, key)

    monkeypatch.setattr(launch, "load_program", counted)
    return seen


def arrays(count: int, size: int = 1000, dtype: Any = np.float32) -> list[Any]:
    return [np.arange(size).astype(dtype) + at for at in range(count)]


class Tensor:
    """An array that answers like a tensor of torch."""

    def __init__(self, array: Any, device: str = "cpu"):
        self.array, self.shape, self.dtype = array, array.shape, f"torch.{array.dtype}"
        self.device = SimpleNamespace(type=device)
        self.is_cuda = device == "cuda"

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(each // self.array.itemsize for each in self.array.strides)

    def element_size(self) -> int:
        return self.array.itemsize


DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int64, np.uint16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(dtype: Any):
    x, y, z = arrays(3, 300, dtype)
    jit(kernels.add)[(3,)](x, y, z, 300)
    assert (z == x + y).all()


def test_an_array_is_read_from_its_first_element():
    x = np.arange(100, dtype=np.float32).reshape(10, 10)
    out = np.zeros(4, np.float32)
    jit(kernels.stride)[1](x[2:9:2, 3::3], out, 20, N=4)
    assert (out == [23, 43, 63, 83]).all()
    jit(kernels.stride)[1](x[::-1], out, -10, N=4)
    assert (out == [90, 80, 70, 60]).all()


def test_tensors_of_other_libraries():
    x, y, z = arrays(3)
    jit(kernels.add)[(8,)](*map(Tensor, (x, y, z)), 1000)
    assert (z == x + y).all()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (7, np.int32), (1 << 40, np.int64), (-(1 << 63), np.int64), ((1 << 64) - 1, np.uint64), (2.5, np.float32),
        (1e300, np.float32), (True, np.int8), (np.float16(0.1), np.float16),
        (np.uint8(200), np.uint8), (np.int16(-3), np.int16), (ml_dtypes.bfloat16(2.5), ml_dtypes.bfloat16),
        (np.bool_(True), np.int8), (ml_dtypes.float8_e5m2(1.5), np.float32),
    ],
)  # fmt: skip
def test_numbers(value: Any, dtype: Any):
    out = np.zeros(1, dtype)
    with np.errstate(over="ignore"):
        expected = np.asarray(value).astype(dtype)
    jit(kernels.number)[1](out, value)
    assert out[0] == expected


def test_an_annotation_says_the_type_of_a_number():
    out = np.zeros(1, np.float32)
    jit(kernels.annotated)[1](out, 0.1, 3)
    assert out[0] == np.float16(0.1) + np.float16(3)
    jit(kernels.annotated)[1](out, 1, 1)
    assert out[0] == 2
    with pytest.raises(TypeError, match=r"type i64 can't be 2\.5"):
        jit(kernels.annotated)[1](out, 0.1, 2.5)


def test_an_integer_that_is_one_is_a_constant():
    out = np.zeros(1, np.int32)
    kernel = jit(kernels.is_one)
    kernel[1](out, 1, CONSTANT=True)
    kernel[1](out, 2, CONSTANT=False)
    assert out[0] == 2
    jit(kernels.is_one, do_not_specialize=["n"])[1](out, 1, CONSTANT=False)
    jit(kernels.is_one, do_not_specialize=[1])[1](out, 1, CONSTANT=False)


def test_tuples():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    increment = jit(kernels.increment)
    kernel = jit(kernels.of_a_tuple)
    for factor in (3.0, 1, 2):
        kernel[(1,)](out, (tlx_xdsl.language.constexpr(8), increment, Pair(x, factor)))
        assert (out == (x + 1) * factor).all()


def test_descriptors():
    x, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones((4, 8), np.float32)
    descriptor = tlx_xdsl.TensorDescriptor.from_tensor(x, [4, 8])
    jit(kernels.of_a_descriptor)[(1,)](descriptor, out, ROWS=4, COLUMNS=8)
    assert (out[:3, :4] == x).all()
    assert out[3].sum() == out[:, 4:].sum() == 0
    descriptor = tlx_xdsl.TensorDescriptor.from_tensor(x, [4, 8], padding="nan")
    with pytest.raises(TypeError, match="of_a_descriptor: 'source' pads with nan"):
        jit(kernels.of_a_descriptor)[(1,)](descriptor, out, ROWS=4, COLUMNS=8)


@pytest.mark.parametrize("grid", [5, [5], (5, 3), (5, 3, 2), np.int64(5), lambda meta: (len(meta["out"]) // 6, 3, 2)])
def test_grids(grid: Any):
    out = np.full(30, -1, np.int32)
    jit(kernels.coordinates)[grid](out)
    sizes = (*(grid(dict(out=out)) if callable(grid) else np.atleast_1d(grid)), 1, 1)[:3]
    expected = [x + 10 * y + 100 * z for z in range(sizes[2]) for y in range(sizes[1]) for x in range(sizes[0])]
    assert out.tolist() == expected + [-1] * (30 - len(expected))


def test_a_grid_gets_all_arguments():
    x, y, z = arrays(3)
    seen: list[Any] = []
    jit(kernels.add)[lambda meta: seen.append(meta) or (1,)](x, y, z=z, n=5, num_warps=8)
    assert list(seen[0]) == ["x", "y", "z", "n", "BLOCK"]
    assert (seen[0]["n"], seen[0]["BLOCK"]) == (5, 128)


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), -1, (1 << 31,), "2", 2.0, None, (2, 2.5)])
def test_what_is_no_grid(grid: Any):
    with pytest.raises(ValueError, match=r"grid .*found|a grid has"):
        jit(kernels.coordinates)[grid](np.zeros(1, np.int32))


def test_an_empty_grid_compiles_and_runs_nothing():
    out = np.full(4, -1, np.int32)
    jit(kernels.coordinates)[(3, 0)](out)
    assert (out == -1).all()


def test_one_specialisation_serves_many_launches(builds: list[str]):
    kernel = jit(kernels.add)
    x, y, z = arrays(3, 1100)
    for size in (1000, 999, 17):
        kernel[(9,)](x[: size + 1], y, z, size)
        kernel[lambda meta: (meta["n"] // meta["BLOCK"] + 1,)](x, y, z, n=size, BLOCK=128, num_warps=8)
    assert len(builds) == 1
    kernel[(9,)](x, y, z, 100, BLOCK=64)
    kernel[(9,)](x.astype(np.float16), y, z, 100)
    kernel[(9,)](x, y, z, 1)
    assert len(builds) == 4
    # Another library's tensors of the same type want the same code.
    kernel[(9,)](*map(Tensor, (x, y, z)), 100)
    assert len(builds) == 4


def constant_of(x, K: tlx_xdsl.language.constexpr):
    tlx_xdsl.language.store(x, K)


def test_constants_that_look_alike_are_distinguished():
    out = np.zeros(1, np.float32)
    kernel = jit(constant_of)
    for value in (1, 1.0, True, 0.0, -0.0, (1,)[0], float("inf")):
        kernel[1](out, value)
        assert (out[0], np.signbit(out[0])) == (value, np.signbit(value))


def test_a_changed_global_is_compiled_anew(monkeypatch):
    x, kernel = np.ones(1, np.float32), jit(kernels.scaled)
    kernel[1](x)
    monkeypatch.setattr(kernels, "SCALE", tlx_xdsl.language.constexpr(5))
    kernel[1](x)
    assert x[0] == 10


def test_it_is_found_on_disk(builds: list[str], monkeypatch):
    x, y, z = arrays(3)
    jit(kernels.add)[(8,)](x, y, z, 1000)
    monkeypatch.setattr(build, "compile_object", lambda *_: pytest.fail("was compiled again"))
    jit(kernels.add)[(8,)](x, y, z, 999)
    assert builds[0] == builds[1]


def test_an_entry_of_another_form_is_compiled_again(builds: list[str], monkeypatch):
    x, y, z = arrays(3)
    jit(kernels.add)[(8,)](x, y, z, 1000)
    cache.store(builds[0], b"\x05\x00\x00\x00{...}")
    z[:] = 0
    jit(kernels.add)[(8,)](x, y, z, 1000)
    assert (z == x + y).all()


def test_a_cache_that_can_not_be_written_is_a_warning(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(cache._Said, "warned", False)
    x, y, z = arrays(3)
    with pytest.warns(cache.CacheWarning):
        jit(kernels.add)[(8,)](x, y, z, 1000)
    assert (z == x + y).all()


def test_options_of_gpus_change_nothing():
    x, y, z = arrays(3)
    jit(kernels.add)[(8,)](
        x, y, z, 1000, num_warps=8, num_stages=2, num_ctas=1, maxnreg=64, stream=7, waves_per_eu=2, pingpongAutoWS=True
    )  # fmt: skip
    assert (z == x + y).all()


def test_arrays_that_are_only_read_may_be_read_only():
    x, y, z = arrays(3)
    x.flags.writeable = False
    kernel = jit(kernels.add)
    kernel[(8,)](x, y, z, 1000)
    assert (z == x + y).all()
    for wrong in ((y, y, x), (x, y, x)):
        with pytest.raises(TypeError, match="add: 'z' is read-only, and the kernel may write it: pass a copy"):
            kernel[(8,)](*wrong, 1000)


@tlx_xdsl.jit
def reads_and_writes(a, b, c, d, e, f, out, n, B: tl.constexpr):
    """Read `a` and `b`, the only arrays that are surely left as they are."""
    at = tl.arange(0, B)
    chosen = tl.where(n > 4, a, b)
    tl.store(out + at, tl.load(chosen + at) + tl.load(a + at * at % B, mask=at < n))
    tl.store(c, 1.0)
    tl.store(d + at * 2, tl.load(b + at), mask=at < n)
    tl.atomic_add(e + at, 1.0)
    p = f
    for _ in range(n):
        tl.store(p, 2.0)
        p += 1


def test_what_a_kernel_writes_is_known_by_the_name():
    given = {name: np.ones(32, np.float32) for name in ("a", "b", "c", "d", "e", "f", "out")}
    for name, array in given.items():
        array.flags.writeable = False
        if name in "ab":
            reads_and_writes[(1,)](**given, n=5, B=16)
        else:
            with pytest.raises(TypeError, match=f"'{name}' is read-only, and the kernel may write it"):
                reads_and_writes[(1,)](**given, n=5, B=16)
        array.flags.writeable = True


def wrong_calls() -> dict[str, tuple[Any, type[Exception], str]]:
    x, y, z = arrays(3)
    read_only = x.copy()
    read_only.flags.writeable = False
    return {
        "missing": (lambda k: k(x, y, z), TypeError, "add: missing a required argument: 'n'"),
        "too many": (lambda k: k(x, y, z, 1, 2, 3), TypeError, "add: too many positional arguments"),
        "twice": (lambda k: k(x, y, z, 5, x=x), TypeError, "add: multiple values for argument 'x'"),
        "unknown": (lambda k: k(x, y, z, 5, blocks=4), KeyError, "blocks was specified but unrecognised"),
        "read-only": (lambda k: k(x, y, read_only, 5), TypeError, "add: 'z' is read-only, and the kernel may write it"),
        "text": (lambda k: k(x, y, z, "5"), TypeError, "add: 'n' must be an array, .*, found str"),
        "gpu": (lambda k: k(x, Tensor(y, "cuda"), z, 5), TypeError, "add: 'y' is on the device .*CPU"),
        "wide": (lambda k: k(x, y, z, 1 << 64), OverflowError, "'n' is 18446744073709551616"),
        "complex": (lambda k: k(x.astype(complex), y, z, 5), TypeError, "'x' has elements of the type complex128"),
        "target": (lambda k: k(x, y, z, 5, target="tpu"), ValueError, "unknown target 'tpu', expected one of cpu, gpu"),
    }


@pytest.mark.parametrize("which", wrong_calls())
def test_what_does_not_fit_is_one_line(which: str):
    call, kind, message = wrong_calls()[which]
    with pytest.raises(kind, match=message) as caught:
        call(jit(kernels.add)[(1,)])
    assert "\n" not in str(caught.value)


def test_kernels_of_tlx_are_refused_at_their_line():
    with pytest.raises(CompilationError, match=r"'ttg\.local_alloc' cannot be compiled for the CPU") as caught:
        jit(kernels.shares)[(1,)](np.zeros(1, np.float32))
    assert caught.value.location is not None
    assert caught.value.location.filename == kernels.__file__
    assert "interpreter: kernel.interpret(grid, ...)" in caught.value.notes[0]


def test_assertions():
    x = np.zeros(4, np.int32)
    jit(kernels.asserts)[(4,)](x, 2)
    assert x.tolist() == [1, 1, 1, 1]
    for options in ({"debug": True}, {"checks": True}):
        with pytest.raises(Fault, match="too far") as caught:
            jit(kernels.asserts, **options)[(4,)](x, 2)
        assert caught.value.notes == ("in program (2, 0, 0)",)
    with pytest.raises(Fault, match="too far"):
        jit(kernels.asserts)[(4,)](x, 2, debug=True)


def test_checks_find_what_lies_beside_an_array():
    x, y, z = arrays(3)
    kernel = jit(kernels.add)
    kernel[(8,)](x, y, z, 1000, checks=True)
    for wrong in ((x[:999], y, z), (x, y[:5], z), (x, y, z[:999]), (x, y[:0], z)):
        with pytest.raises(Fault) as caught:
            kernel[(8,)](*wrong, 1000, checks=True)
        assert caught.value.location is not None
        assert caught.value.location.filename == kernels.__file__
    with pytest.raises(Fault):
        jit(kernels.add, checks=True)[(8,)](x[1:], y, z, 1000)


def test_the_interpreter_is_an_option():
    x, y, z = arrays(3)
    with pytest.raises(Fault):
        jit(kernels.add)[(8,)](x, y, z[:999], 1000, target="interpreter", num_warps=2)
    jit(kernels.add)[(8,)](x, y, z, 1000, target="interpreter")
    assert (z == x + y).all()


def test_it_prints_what_the_interpreter_prints(capsys):
    x = np.array([1.5, -2, 0.1], np.float32)
    jit(kernels.prints)[(3,)](x)
    assert capsys.readouterr().out == "1.5\n-2.0\n0.1\n"


def test_a_bound_launch_repeats():
    x, y, z = arrays(3)
    bound = jit(kernels.add).bind(lambda meta: (meta["n"] // 128 + 1,), x, y, z, n=1000)
    assert (z == arrays(3)[2]).all()
    for _ in range(3):
        x += 1
        bound()
        assert (z == x + y).all()


def test_warmup_compiles(builds: list[str]):
    x, y, z = arrays(3)
    kernel = jit(kernels.add)
    program = kernel.warmup(x, y, z, 1000, grid=(1,))
    assert program.metadata.name == "add"
    assert (z == arrays(3)[2]).all()
    kernel[(8,)](x, y, z, 1000)
    assert len(builds) == 1


def test_threads_launch_a_new_kernel_at_once(builds: list[str]):
    kernel = jit(kernels.add)
    given = [arrays(3) for _ in range(16)]
    running = [threading.Thread(target=lambda each=each: kernel[(8,)](*each, 1000)) for each in given]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert all((z == x + y).all() for x, y, z in given)
    assert len(builds) == 1


def test_it_needs_llvmlite(monkeypatch):
    script = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import numpy as np\n"
        "from tests.unit.cpu.runtime.cpu_kernels import jit, scaled\n"
        "try:\n"
        "    jit(scaled)[1](np.zeros(1, np.float32))\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert "pip install 'tlx-xdsl[cpu]'" in done.stdout


def test_importing_and_decorating_load_no_more_than_they_need():
    script = (
        "import sys, tlx_xdsl\n"
        "tlx_xdsl.jit, tlx_xdsl.set_cpu_threads\n"
        "@tlx_xdsl.jit(target='cpu')\n"
        "def kernel(x): pass\n"
        "kernel[(1,)]\n"
        "print([name for name in ('llvmlite', 'torch', 'triton', 'xdsl') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_remarks_about_accesses_are_not_shown(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit(gathers)[(1,)](np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
    assert capsys.readouterr().err == ""


def gathers(x, indices):
    at = tlx_xdsl.language.arange(0, 4)
    tlx_xdsl.language.store(x + at, tlx_xdsl.language.load(x + tlx_xdsl.language.load(indices + at)))


LAUNCH = """
import sys
import numpy as np
from tests.unit.cpu.runtime import cpu_kernels
x, y, z = (np.arange(1000, dtype=np.float32) for _ in range(3))
cpu_kernels.jit(cpu_kernels.add)[(8,)](x, y, z, 1000, BLOCK=256)
assert (z == x + y).all()
print("xdsl" in sys.modules, "torch" in sys.modules)
"""


def test_processes_share_what_they_compile(monkeypatch, tmp_path):
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path))
    # Only the first have to load the compiler. It is not edited meanwhile, or they would keep nothing.
    unchanged = "build.compiler_changed = lambda: False; build.compiler_fingerprint = lambda: ''"
    script = f"from tlx_xdsl.cpu.runtime import build; {unchanged}\n{LAUNCH}"
    running = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(each.communicate(timeout=120)[0], each.returncode) for each in running] == [("True False\n", 0)] * 2
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False False\n"


def test_products_of_f32_keep_all_bits():
    x = np.random.default_rng(0).standard_normal((16, 16), dtype=np.float32)
    out = np.zeros_like(x)
    jit(kernels.product)[1](x, out)
    np.testing.assert_allclose(out, x.astype(float) @ x, rtol=1e-6, atol=1e-5)
