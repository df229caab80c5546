"""A launch makes a constant of an integer that is 1: what the parameter can do at run time it can do as one, too."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.frontend.kernels import load

AT_BOTH = [
    "v = n.to(tl.int64)",
    "v = (n + 1).to(tl.float32)",
    "n += 1; v = n.to(tl.int64)",
    "t = (n, 2); v = t[0].to(tl.int64)",
    "tl.static_assert(n.dtype == tl.int32 and n.dtype.is_int())",
    "tl.static_assert(len(n.shape) == 0 and n.numel == 1)",
    "tl.static_assert(n.type.is_int() and not n.type.is_block())",
    "tl.static_assert(hasattr(n, 'to') and not hasattr(n, 'nothing'))",
    "tl.static_assert(getattr(n, 'numel') == 1 and getattr(n, 'nothing', 3) == 3)",
    "v = getattr(n, 'to')(tl.int64)",
    "v = n[None]; tl.static_assert(v.shape[0] == 1)",
    "v = n[None, :]",
    "v = n.abs() + n.T",
    "v = tl.multiple_of(n, 1)",
    "v = tl.max_contiguous(n, 1)",
    "v = tl.max_constancy(n, 1)",
    "v = 0 <= n <= 8",
    "v = helper(n)",
    "k = n\nfor i in range(4): k = k.to(tl.int32) * 2",
    "for i in range(4): n = n + tl.load(x)",
    "while n < 4: n *= 2",
    "if tl.load(x) > 0: n = n * 2",
]

AT_NEITHER = {
    "v = n.nothing": "has no attribute 'nothing'",
    "v = getattr(n, 'nothing')": "has no attribute 'nothing'",
    "v = n[0]": "can't be indexed",
    "v = n.to(tl.int8, bitcast=True)": "bits",
    "while n < 4: n = n.to(tl.int64)": "must keep its type",
}


HELPER = """
@tlx_xdsl.jit
def helper(a):
    b = a * 2
    return b.to(tl.int64)

"""


def kernel_of(line, tmp_path):
    lines = "".join(f"    {each}\n" for each in line.replace("; ", "\n").splitlines())
    return load(tmp_path, f"{HELPER}@tlx_xdsl.jit\ndef kernel(x, n):\n{lines}").kernel


@pytest.mark.parametrize("line", AT_BOTH)
def test_a_constant_has_what_the_number_has(line, tmp_path):
    kernel = kernel_of(line, tmp_path)
    for n in (2, 1):
        kernel.compile(np.zeros(4, np.int32), n)


@pytest.mark.parametrize("line", AT_NEITHER)
def test_what_a_number_does_not_have_the_constant_has_not(line, tmp_path):
    kernel = kernel_of(line, tmp_path)
    for n in (2, 1):
        with pytest.raises(tlx_xdsl.CompilationError, match=AT_NEITHER[line]):
            kernel.compile(np.zeros(4, np.int32), n)


@tlx_xdsl.jit
def rows(source, target, pitch):
    row = tl.program_id(0)
    tl.store(target + row * pitch.to(tl.int64), tl.load(source + row * pitch.to(tl.int64)) + 1)


@pytest.mark.parametrize("pitch", [1, 2])
def test_a_launch_and_a_run_are_the_same(pitch):
    source, launched, interpreted = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    rows[(4,)](source, launched, pitch)
    rows.interpret((4,), source, interpreted, pitch)
    assert (launched == interpreted).all()
    assert list(launched[: 4 * pitch : pitch]) == [at + 1 for at in range(0, 4 * pitch, pitch)]


def plain(x, n, both: tl.int64, wide):
    tl.store(x, n + both + wide)


def types_of(x, *numbers, **options):
    found = tlx_xdsl.jit(plain, **options).signature_of(x, *numbers)
    return {**found["signature"], **{name: str(value) for name, value in found["constexprs"].items()}}


def test_what_a_run_is_compiled_for_is_what_a_launch_is():
    x = np.zeros(64, np.int64)
    assert types_of(x, 1, 1, 16) == {"x": "*i64:16", "n": "1", "both": "i64", "wide": "i32:16"}
    assert types_of(x, 1, 16, 1, do_not_specialize=["n", 3, "n"]) == {
        "x": "*i64:16", "n": "i32", "both": "i64:16", "wide": "i32",
    }  # fmt: skip
    assert types_of(x, 1, 16, 16, do_not_specialize_on_alignment=["x", 2, "wide"]) == {
        "x": "*i64", "n": "1", "both": "i64", "wide": "i32",
    }  # fmt: skip


def constant(x, LENGTH: tl.constexpr):
    tl.store(x + tl.arange(0, 64), 0.0, mask=tl.arange(0, 64) < LENGTH)


@pytest.mark.parametrize("option", ["do_not_specialize", "do_not_specialize_on_alignment"])
@pytest.mark.parametrize("way", ["compile", "launch", "interpret"])
def test_a_constexpr_is_always_specialised(option, way):
    kernel = tlx_xdsl.jit(constant, **{option: ["LENGTH"]})
    x = np.zeros(64, np.float32)
    ways = {
        "compile": lambda: kernel.compile(x, 64),
        "launch": lambda: kernel[(1,)](x, 64),
        "interpret": lambda: kernel.interpret((1,), x, 64),
    }
    with pytest.raises(tlx_xdsl.CompilationError, match="LENGTH marked as constexpr and listed in do_not_specialize"):
        ways[way]()
