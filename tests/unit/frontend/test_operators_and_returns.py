"""Chained comparisons, operators of aggregates, and what functions return: as stock Triton's, and what is refused."""

import numpy as np
import pytest

import tlx_xdsl
from tests.unit.frontend.kernels import load
from tests.unit.frontend.one_liners import assert_as_stock
from tlx_xdsl.text.diagnostics import collected_diagnostics

NUMBERS = {"out": "*i32", "x": "*i32", "n": "i32"}
STORE = "tl.store(out + tl.arange(0, 8), {})"


@pytest.mark.parametrize(
    "chain",
    [
        "0 <= i <= 8",
        "0 < i < n",
        "1 < n <= i < 7 != i",
        "0 < 1 < i",
        "1 < 0 < i",
        "i < 3 < 2",
        "0 < n < 8",
    ],
)
def test_a_chained_comparison_is_by_element(tmp_path, chain):
    assert_as_stock(tmp_path, NUMBERS, "i = tl.load(x + tl.arange(0, 8));; " + STORE.format(f"tl.where({chain}, 1, 2)"))


def test_operands_after_the_one_that_decides_are_not_evaluated(tmp_path):
    assert_as_stock(tmp_path, NUMBERS, "tl.store(out, 1 if 3 < 2 < tl.atomic_add(x, 1) else 2)")


PAIR = """
from triton.language.core import _aggregate as aggregate


@aggregate
class Pair:
    a: tl.tensor
    b: tl.tensor

    @triton.jit
    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b)

    @triton.jit
    def __mul__(self, by):
        return Pair(self.a * by, self.b * by)

    @triton.jit
    def __rmul__(self, by):
        return Pair(by * self.a, by * self.b + 1)

    @triton.jit
    def __lt__(self, other):
        return (self.a < other.a) & (self.b < other.b)

    @triton.jit
    def __eq__(self, other):
        return self.a == other.a

    @triton.jit
    def __neg__(self):
        return Pair(-self.a, -self.b)

    @triton.jit
    def __invert__(self):
        return Pair(self.b, self.a)

    @triton.jit
    def __getitem__(self, i):
        return self.a + i

    @triton.jit
    def __sub__(self, other):
        return NotImplemented

    @triton.jit
    def __rsub__(self, other):
        return Pair(other - self.a, self.b)
"""


@pytest.mark.parametrize(
    "line",
    [
        "r = p + p",
        "r = p * 3",
        "r = 3 * p",
        "r = n * p",
        "r = -p",
        "r = ~p",
        "r = p;; r += p",
        "r = Pair(p[2], p[n])",
        "r = 5 - p",
        "r = Pair(tl.where(p < (p + p), 1, 2), tl.where(p == p, 1, 2))",
        "r = Pair(tl.where((p + p) > p, 1, 2), n)",
    ],
)
def test_an_aggregate_says_what_its_operators_mean(tmp_path, line):
    body = f"p = Pair(n, tl.load(x));; {line};; tl.store(out, r.a);; tl.store(out + 1, r.b)"
    assert_as_stock(tmp_path, NUMBERS, body, helper=PAIR)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("p - p", "'-' takes numbers and blocks, found a Pair"),
        ("p / p", "'/' takes numbers and blocks, found a Pair"),
        ("p >= p", "'>=' takes numbers and blocks, found a Pair"),
        ("+p[0:2]", "a Pair can't be indexed"),
    ],
)
def test_an_operator_that_an_aggregate_does_not_have_is_refused(tmp_path, line, message):
    helper = PAIR.replace("from triton", "from tlx_xdsl").replace("@triton", "@tlx_xdsl")
    source = f"{helper}\n\n@tlx_xdsl.jit\ndef kernel(x, n):\n    p = Pair(n, tl.load(x))\n    p = {line}\n"
    with pytest.raises(tlx_xdsl.CompilationError, match=message.replace("+", r"\+")):
        load(tmp_path, source).kernel.compile({"x": "*i32", "n": "i32"})


RETURNS = """
@triton.jit
def eight():
    return tl.constexpr(8)


@triton.jit
def same(x):
    if x > 3:
        return 4
    return 4


@triton.jit
def differs(x):
    if x > 3:
        return 4
    return 5


@triton.jit
def items(x):
    if x > 3:
        return 1, x, 7
    return 1, x + 1, 8


@triton.jit
def half():
    return 0.5


@triton.jit(noinline=True)
def apart():
    return 16


@triton.jit
def first(a, b):
    return a
"""


@pytest.mark.parametrize(
    "line",
    [
        "k: tl.constexpr = eight();; tl.store(out + tl.arange(0, eight()), k)",
        "k: tl.constexpr = same(n);; tl.store(out, k)",
        "tl.store(out, differs(n))",
        "a, b, c = items(n);; k: tl.constexpr = items(n)[0];; tl.store(out, a + b * k + c)",
        "tl.store(out, (n.to(tl.float16) * half()).to(tl.int32))",
        "k: tl.constexpr = apart();; tl.store(out + tl.arange(0, k), n)",
        "tl.store(out + tl.arange(0, tl.cdiv(14, 2) + 1), n)",
        "tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 8)), 0, first))",
    ],
)
def test_what_all_returns_agree_on_stays_known(tmp_path, line):
    assert_as_stock(tmp_path, NUMBERS, line, helper=RETURNS)


ONE_BRANCH = """
@tlx_xdsl.jit
def one(x, p):
    if x > 3:
        return {}

@tlx_xdsl.jit
def kernel(out, n):
    r = one(n, out)
    tl.store(out, {})
"""


def test_a_value_that_one_branch_returns_is_undefined_on_the_other(tmp_path):
    for returned, read in (("x * 2", "r"), ("(x, x * 2)", "r[1]"), ("x.to(tl.float16)", "r.to(tl.int32)")):
        kernel = load(tmp_path, ONE_BRANCH.format(returned, read)).kernel
        with collected_diagnostics() as said:
            kernel.compile({"out": "*i32", "n": "i32"})
        assert [each.message for each in said] == [
            "where no 'return' of 'one' is reached its value is undefined, and 0 here"
        ]
        assert said[0].location.line == 7
        out = np.full(1, 7, np.int32)
        for n, expected in ((5, 5 if "float" in returned else 10), (2, 0)):
            kernel.interpret((1,), out, n)
            assert out[0] == expected


def test_a_number_that_a_combination_returns_is_a_value(tmp_path):
    source = """
@tlx_xdsl.jit
def zero(a, b):
    return 0

@tlx_xdsl.jit
def kernel(out):
    tl.store(out, tl.reduce(tl.arange(0, 8), 0, zero) + 1)
"""
    out = np.full(1, 7, np.int32)
    load(tmp_path, source).kernel.interpret((1,), out)
    assert out[0] == 1


@pytest.mark.parametrize("returned", ["p", "(x, p)"])
def test_what_has_no_zero_is_returned_by_all_branches_or_by_none(tmp_path, returned):
    kernel = load(tmp_path, ONE_BRANCH.format(returned, "1")).kernel
    with pytest.raises(tlx_xdsl.CompilationError, match=r"Return type mismatch: 'one' returns .* None at its end"):
        kernel.compile({"out": "*i32", "n": "i32"})
