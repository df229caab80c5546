"""Upstream MLIR reads what `linalg-lower-tensors` prints, and runs it to the numbers of our interpreter."""

# covers: linalg-lower-tensors

import re
from pathlib import Path

import numpy as np
import pytest

from tests.oracle import upstream_mlir
from tests.unit.cpu.linalg.functions import lowered, results_of, upstream_text
from tests.unit.cpu.linalg.test_tensors import DIVISIONS, dividends_and_divisors, function, values

pytestmark = pytest.mark.skipif(upstream_mlir.REASON is not None, reason=str(upstream_mlir.REASON))

FILES = Path(__file__).parents[3] / "filecheck/linalg"
FUNCTIONS = {
    name: text
    for path in sorted(FILES.glob("tensors_*.mlir"))
    if "invalid" not in path.name
    for text, name in re.findall(r"^(tt\.func public @(\w+).*?^})", path.read_text(), re.DOTALL | re.MULTILINE)
    if "!tt.ptr" not in text
}
"""The functions of the filechecks that take no pointers."""
BY_VALUE = {"rank_0", "divisions", "clamp", "device_functions", "elements", "narrow_sum", "one_element"}
"""Those with numbers among their results, which a packed call does not give back; or with functions to link."""
BYTES = {"conversions", "bytes", "scaled"}
"""Those that convert 8-bit floats, for which the lowerings to LLVM have no code."""
PRODUCTS = {"narrow_operands": 2**-20, "precisions": 2**-19}
"""Sums of products by how much of their size they may differ: numpy has an order of its own."""


def printed(name):
    return upstream_text(lowered(FUNCTIONS[name]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_upstream_reads_what_is_printed(name):
    upstream_mlir.check(printed(name))


def argument(type_, seed):
    *shape, element = (type_[7:-1] if type_.startswith("tensor<") else type_).split("x")
    made = values(element, *map(int, shape), seed=seed)
    if element in ("f16", "bf16", "f32") and len(shape) > 1:
        # Products of any bits would be infinite.
        made = np.random.default_rng(seed).standard_normal(made.shape).astype(made.dtype)
    return made if type_.startswith("tensor<") else made[()]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in BY_VALUE | BYTES])
def test_upstream_has_the_numbers_of_the_interpreter(name):
    head = FUNCTIONS[name].split("{\n")[0]
    types = re.findall(r"%\w+: ([\w<>]+)", head)
    arguments = [argument(type_, seed) for seed, type_ in enumerate(types)]
    expected = results_of(lowered(FUNCTIONS[name]), *arguments)
    results = [np.zeros(each.shape, each.dtype) for each in expected]
    found = upstream_mlir.run_function(printed(name), name, arguments, results)
    for have, want in zip(found, expected, strict=True):
        if want.dtype.kind == "f":
            size = np.abs(want[np.isfinite(want)]).max(initial=0)
            np.testing.assert_allclose(have, want, rtol=0, atol=PRODUCTS.get(name, 0) * size)
        else:
            np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_by_zero_do_not_trap(name):
    text = function(f"%r = arith.{name} %0, %1 : tensor<64xi32>", *["tensor<64xi32>"] * 2, result="tensor<64xi32>")
    a, b = dividends_and_divisors("i32")
    (expected,) = results_of(lowered(text), a, b)
    (found,) = upstream_mlir.run_function(upstream_text(lowered(text)), "f", [a, b], [np.zeros_like(expected)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rtz", "rtne"])
def test_conversions_of_floats(element, mode):
    types = ["tensor<128xf32>", f"tensor<128x{element}>", "tensor<128xi16>"]
    body = f"""%h = tt.fp_to_fp %0, rounding = {mode} : {types[0]} -> {types[1]}
      %r = tt.bitcast %h : {types[1]} -> {types[2]}"""
    module, given = lowered(function(body, types[0], result=types[2])), values("f32", 128)
    # A NaN may have other bits.
    given = np.where(np.isnan(given), np.float32(1), given)
    (expected,) = results_of(module, given)
    (found,) = upstream_mlir.run_function(upstream_text(module), "f", [given], [np.zeros(128, np.int16)])
    np.testing.assert_array_equal(found, expected)
