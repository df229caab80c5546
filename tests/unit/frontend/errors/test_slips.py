"""Habits of numpy, torch and Python: the error says what a kernel has instead."""

import math

import numpy as np
import pytest

from tests.unit.frontend.kernels import load
from tlx_xdsl import CompilationError

pytestmark = pytest.mark.quick

GLOBALS = {"np": np, "math": math}


@pytest.mark.parametrize(
    ("statement", "column", "message"),
    [
        ("np.exp(v)", 5, "the function 'exp' can't be called in a kernel; use tl.exp"),
        ("np.maximum(v, 0)", 5, "the function 'maximum' can't be called in a kernel; use tl.maximum"),
        ("np.power(v, 2)", 5, "the function 'power' can't be called in a kernel; use libdevice.pow"),
        ("np.fft.fft(v)", 5, "the function 'fft' can't be called in a kernel"),
        ("math.exp(v)", 14, "'exp' runs at compile time: its arguments must be constexprs, found a block of type "),
        ("math.exp(v)", 14, "; use tl.exp"),
        ("math.tanh(v)", 15, "; use libdevice.tanh"),
        ("v.astype(tl.float32)", 5, "has no attribute 'astype': a value is converted by .to(dtype)"),
        ("v.float()", 5, "has no attribute 'float': a value is converted by .to(tl.float32)"),
        ("v.mean()", 5, "has no attribute 'mean': tl.sum(v, axis) / n is the mean"),
        ("v.shap", 5, "has no attribute 'shap', did you mean 'shape'?"),
        ("[].append(v)", 5, "has no attribute 'append': lists are tuples in a kernel, which never change: l = l + ("),
        ("print(v)", 11, """print takes a text first, found a block of type fp32[64]: write print("v", v)"""),
        ("print(v, v + 1)", 11, """write print("v, v + 1", v, v + 1)"""),
    ],
)
def test_the_error_says_what_a_kernel_has_instead(tmp_path, statement, column, message):
    lines = (
        "import math", "import numpy as np", "@tlx_xdsl.jit", "def kernel(x, B: tl.constexpr):",
            "    v = tl.load(x + tl.arange(0, B))", f"    {statement}",
    )  # fmt: skip
    kernel = load(tmp_path, "\n".join(lines) + "\n").kernel
    with pytest.raises(CompilationError) as caught:
        kernel.compile({"x": "*fp32"}, {"B": 64})
    assert message in caught.value.message
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (10, column)


def test_what_is_recommended_works(tmp_path):
    lines = (
        "@tlx_xdsl.jit", "def kernel(x, B: tl.constexpr):",
        "    v = tl.load(x + tl.arange(0, B))", "    l = []", "    for i in tl.static_range(4):",
        "        l = l + (i,)", "    m = [v * j for j in range(3)]", '    print("v", v)',
        "    tl.store(x + tl.arange(0, B), tl.exp(m[0]) + l[3] + m[2].to(tl.float32))",
    )  # fmt: skip
    x = np.ones(64, np.float32)
    load(tmp_path, "\n".join(lines) + "\n").kernel.interpret(1, x, 64)
    assert (x == 6).all()
