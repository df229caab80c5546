"""Expressions of `--grid`, `--shape` and `--check`: arithmetic over the arguments, and nothing else of Python."""

# covers: tlx run, tlx addresses

import numpy as np
import pytest

from tlx_xdsl import CompilationError
from tlx_xdsl.tools.launch_line.expressions import evaluate
from tlx_xdsl.tools.launch_line.launches import grid_of
from tlx_xdsl.tools.launch_line.request import Said

pytestmark = pytest.mark.quick

NAMES = {"M": 300, "BLOCK": 64, "x": np.arange(6.0).reshape(2, 3)}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4", (4, 1, 1)),
        ("2, 3,1", (2, 3, 1)),
        ("cdiv(M, BLOCK)", (5, 1, 1)),
        ("max(1, M // BLOCK) if M > 1 else 7, 2**3 << 1", (4, 16, 1)),
        ("M - 1 & 15, M > 2 and 5", (11, 5, 1)),
    ],
)
def test_grids(text, sizes):
    assert grid_of(Said({}, {}, text, 0), NAMES) == sizes


def test_arrays():
    x = NAMES["x"]
    assert (evaluate("--check", "np.maximum(x @ x.T, 20).sum(axis=1)", NAMES) == np.maximum(x @ x.T, 20).sum(1)).all()
    assert (evaluate("--check", "np.stack([x] * 2)[1, ..., None]", NAMES) == x[..., None]).all()
    assert (evaluate("--check", "(0 < x) * -x[::-1]", NAMES) == (x > 0) * -x[::-1]).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("().__class__", "is more than numbers, names, arithmetic and calls"),
        ("[c for c in (1, 2)]", "is more than numbers, names, arithmetic and calls"),
        ("(lambda: 1)()", "there is no function"),
        ("np.load('x')", "there is no function 'np.load'"),
        ("np.sum.__globals__", "is more than numbers"),
        ("x.tofile('y')", "there is no function 'x.tofile'"),
        ("M.sum()", "'.sum' is of arrays only"),
        ("__import__('os')", "there is no function '__import__'"),
        ("9**9**9", "a number has at most 4096 bits"),
        ("1 << 10**9", "a number has at most 4096 bits"),
        ("[1] * 10**9", "a list has at most 4096 items"),
        ("max(*(1, 2))", "is more than numbers"),
        ("min(**M)", "arguments must be written out"),
        ("M is 3", "numbers are compared by"),
        ("N", "no name 'N', the names are M, BLOCK, x"),
        ("(" * 3000, "SyntaxError"),
        ("1 " + "+ 1" * 3000, "an expression has at most 4096 characters"),
        ("-" * 4000 + "1", "can't be computed"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_refusals(text, reason):
    with pytest.raises(CompilationError, match="can't be computed") as caught:
        evaluate("--grid", text, NAMES)
    assert reason in caught.value.message


def test_functions_of_arrays_need_no_np():
    x = np.arange(6.0).reshape(2, 3)
    names = {"x": x}
    np.testing.assert_allclose(evaluate("--check", "sqrt(x) + exp(-x)", names), np.sqrt(x) + np.exp(-x))
    np.testing.assert_allclose(evaluate("--check", "softmax(x, axis=1)", names).sum(1), 1)
    np.testing.assert_allclose(evaluate("--check", "max(x, axis=0) - mean(x)", names), x.max(0) - x.mean())
    assert evaluate("--grid", "max(3, min(7, 5))", {}) == 5
    with pytest.raises(CompilationError, match="there is no function 'sofmax', did you mean 'softmax'"):
        evaluate("--check", "sofmax(x)", names)
    with pytest.raises(CompilationError, match="no name 'xs', did you mean 'x'"):
        evaluate("--check", "xs + 1", names)
