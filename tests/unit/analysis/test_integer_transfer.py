"""Each domain computes what the table of transfer functions decodes: integers of one bit, in all programs of a grid."""

from __future__ import annotations

import numpy as np
import pytest

from tlx_xdsl.addresses import LaunchFacts, analyse_program_addresses, evaluate
from tlx_xdsl.addresses.coverage.coverage import Coverage
from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.analysis.integers.functions import DIVISIONS, FUNCTIONS, apply
from tlx_xdsl.analysis.integers.transfer import TRANSFER, Domain, transfer
from tlx_xdsl.dialects import tt
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

BITS = ((0, 0), (1, 0), (0, 1), (1, 1))
"""The two low bits of four programs' ids."""

# As a signed number, the bit 1 is -1.
OPERATIONS = {
    "addi": lambda a, b: (a + b) % 2,
    "subi": lambda a, b: (a - b) % 2,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minui": min,
    "maxui": max,
    "minsi": lambda a, b: -min(-a, -b),
    "maxsi": lambda a, b: -max(-a, -b),
    "cmpi eq,": lambda a, b: a == b,
    "cmpi ne,": lambda a, b: a != b,
    "cmpi slt,": lambda a, b: -a < -b,
    "cmpi sge,": lambda a, b: -a >= -b,
    "cmpi ult,": lambda a, b: a < b,
    "cmpi ugt,": lambda a, b: a > b,
}


def kernel(operation: str, extension: str) -> str:
    return f"""
tt.func public @f(%p: !tt.ptr<i8>) {{
  %one = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  %half = arith.shrsi %pid, %one : i32
  %a = arith.trunci %pid : i32 to i1
  %b = arith.trunci %half : i32 to i1
  %c = arith.{operation} %a, %b : i1
  %n = arith.{extension} %c : i1 to i32
  %q = tt.addptr %p, %n : !tt.ptr<i8>, i32
  %v = tt.load %q : !tt.ptr<i8>
  tt.return
}}"""


@pytest.mark.parametrize("extension", ["extui", "extsi"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_single_bits_in_polynomials_and_vectors(operation: str, extension: str):
    module = parse_module(kernel(operation, extension))
    verify_module(module)
    (function,) = module.ops
    assert isinstance(function, tt.FuncOp)
    expected = [int(OPERATIONS[operation](*bits)) * (-1 if extension == "extsi" else 1) for bits in BITS]
    facts = LaunchFacts(grid=(4, 1, 1))
    (access,) = analyse_program_addresses(module, facts, strict=True).accesses
    assert [evaluate.block(access, facts, (number, 0, 0)) for number in range(4)] == expected
    (touched,) = Coverage(module, function, Launch((4, 1, 1))).touched
    assert dict(zip(touched.runs.program, touched.runs.start, strict=True)) == dict(enumerate(expected))


def test_functions_round_as_they_are_called():
    left, right = np.arange(-9, 10), np.full(19, 4)
    results = {name: FUNCTIONS[name](left, right) for name in ("floordiv", "ceildiv", "truncdiv", "mod", "truncmod")}
    exact = left / right
    assert (results["floordiv"] == np.floor(exact)).all()
    assert (results["ceildiv"] == np.ceil(exact)).all()
    assert (results["truncdiv"] == np.trunc(exact)).all()
    assert (results["mod"] == left - 4 * np.floor(exact)).all()
    assert (results["truncmod"] == left - 4 * np.trunc(exact)).all()


def test_a_domain_without_transfer_functions_knows_nothing():
    module = parse_module(kernel("addi", "extui"))
    domain: Domain[str] = Domain()
    for op in module.walk():
        if type(op) in TRANSFER:
            assert transfer(domain, op, ["?"] * len(op.operands)) is None


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_and_arrays_have_the_same_values(function):
    """Numbers are computed with by Python, arrays by numpy, of whose functions each is one."""
    numbers = [*range(-9, 10), 2**31, -(2**31), 2**40 + 3, -(2**40) - 5, 2**62]
    a, b = (each.ravel() for each in np.meshgrid(numbers, numbers))
    found = apply(function, [a, b])
    alone = [apply(function, [int(left), int(right)]) for left, right in zip(a, b, strict=True)]
    assert found.dtype == np.int64
    assert {type(each) for each in alone} == {int}
    np.testing.assert_array_equal(found, alone)
    divisor = np.where(b == 0, 1, b) if function in DIVISIONS else b
    numpy_s = {"truncdiv": np.trunc, "shr": np.right_shift, "min": np.minimum, "max": np.maximum, "mod": np.remainder}
    if function == "truncdiv":
        small = np.abs(a) < 2**50
        np.testing.assert_array_equal(found[small], np.trunc(a[small] / divisor[small]).astype(np.int64))
    elif function in numpy_s:
        np.testing.assert_array_equal(found, numpy_s[function](a, divisor))
