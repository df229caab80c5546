"""Operators, casts and functions on elements: what stock Triton prints for each pair of types, we print."""

# covers: tl.dtypes, tt.elementwise

from __future__ import annotations

import os
import re

import pytest

from tests.unit.frontend.oracle.against_stock import Case, Verdict, compare, disagreements, reference_version

pytestmark = [pytest.mark.backend, reference_version()]

FULL = os.environ.get("TLX_TEST_VOLUME") == "full"

TYPES = ["i1", "i8", "u8", "i32", "u32", "i64", "fp8e5", "fp16", "bf16", "fp32", "fp64"]
if FULL:
    TYPES += ["i16", "u16", "u64", "fp8e4nv"]

NAMES = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp8e5": "float8e5", "fp8e4nv": "float8e4nv", "fp16": "float16", "bf16": "bfloat16",
    "fp32": "float32", "fp64": "float64",
}  # fmt: skip


def stored(expression: str, signature: dict[str, str]) -> Case:
    """A kernel that stores a scalar; the conversion to float64 shows its signedness."""
    return Case((f"tl.store(out, {expression})",), {**signature, "out": "*fp64"})


LIKE_OTHERS = ["-", "*", "|", "^", "<<", "!=", ">="]
"""What becomes of two types is one rule for each of `+ - *`, `& | ^`, the shifts and the comparisons."""


def pairs(symbol: str) -> list[tuple[str, str]]:
    """The types of both sides: all pairs, or a third of them, in which each type stands on either side."""
    every = [(x, y) for x in TYPES for y in TYPES]
    if FULL or symbol not in LIKE_OTHERS:
        return every
    third = LIKE_OTHERS.index(symbol) % 3
    return [(x, y) for x, y in every if (TYPES.index(x) + TYPES.index(y)) % 3 == third]


@pytest.mark.parametrize("symbol", ["+", "/", "//", "%", "&", ">>", "<", "==", *LIKE_OTHERS])
def test_operators(tmp_path, symbol):
    verdicts = compare(tmp_path, [stored(f"x {symbol} y", {"x": x, "y": y}) for x, y in pairs(symbol)])
    assert not disagreements(verdicts)


NUMBERS = ["True", "0", "2", "-1", "300", "2**31", "2**40", "2**63", "2**64", "0.1", "1e60", "1e-60", 'float("inf")']


@pytest.mark.parametrize("symbol", ["+", "-", "/", "//", "%", "&", ">>", "<", "=="])
def test_operators_with_a_number(tmp_path, symbol):
    numbers = NUMBERS if FULL else NUMBERS[1::2]
    cases = [
        stored(expression, {"x": x})
        for number in numbers
        for x in TYPES
        for expression in (f"x {symbol} {number}", f"{number} {symbol} x")
    ]
    assert not disagreements(compare(tmp_path, cases))


@pytest.mark.parametrize(
    "options", ["", ", bitcast=True", ", fp_downcast_rounding='rtz'", ", fp_downcast_rounding='rtne'"]
)
def test_casts(tmp_path, options):
    cases = [
        Case((f"tl.store(out, x.to(tl.{NAMES[target]}{options}))",), {"x": source, "out": f"*{target}"})
        for source in [*TYPES, "*fp16"]
        for target in TYPES
    ]
    for target in ("tl.pointer_type(tl.float32)", "tl.pointer_type(tl.float16)"):
        # Stock's frontend makes invalid IR of the narrower integers.
        sources = ("i64", "u64", "fp32", "*fp16")
        cases += (stored(f"tl.load(x.to({target}{options}))", {"x": source}) for source in sources)
    assert not disagreements(compare(tmp_path, cases))


POINTER_OFFSETS = ["i1", "i8", "u8", "i32", "u32", "i64", "u64", "fp32", "*fp16"]

UNSIGNED = ("i1", "u8", "u32")


def test_pointers(tmp_path):
    cases = [
        stored(f"tl.load({expression})", {"p": "*fp16", "y": y})
        for expression in ("p + y", "y + p", "p - y", "y - p", "p + 1", "p - 1", "1 + p", "p + 2**40", "p + True")
        for y in POINTER_OFFSETS
        if not (expression == "p - y" and y in UNSIGNED)
    ]
    cases += (
        stored(e, {"p": "*fp16", "q": "*fp16"}) for e in ("p == q", "p < q", "p == 0", "p & 7", "p * 2", "-p", "~p")
    )
    assert not disagreements(compare(tmp_path, cases))


def test_a_pointer_goes_back_by_an_unsigned_offset(tmp_path):
    """Deliberate: stock negates in the offset's own width, so that `p - y` goes forward by 2**32 - y for a uint32."""
    for verdict in compare(tmp_path, [stored("tl.load(p - y)", {"p": "*fp16", "y": y}) for y in UNSIGNED]):
        assert not verdict.agrees
        [ours] = [line for line in verdict.ours if line.startswith("tt.load")]
        assert re.search(
            r"tt.addptr argument 0, \(arith.subi \(arith.constant 0 : i64\).0, \(arith.extui argument 1", ours
        )


UNARY = [
    "-x", "~x", "tl.abs(x)", "tl.exp(x)", "tl.exp2(x)", "tl.log(x)", "tl.log2(x)", "tl.sin(x)", "tl.cos(x)",
    "tl.sqrt(x)", "tl.sqrt_rn(x)", "tl.rsqrt(x)", "tl.erf(x)", "tl.floor(x)", "tl.ceil(x)", "x.item()", "x.abs()",
    "tl.cast(x, tl.float32)", "tl.to_tensor(x)", "tl.add(x, 1)", "tl.cdiv(x, 4)", "x.cdiv(4)", "tl.math.exp(x)",
    "tl.umulhi(x, 3)", "tl.fma(x, 2.0, 1)", "tl.minimum(x, 3)", "tl.clamp(x, 0.0, 1.0, tl.PropagateNan.ALL)",
    "tl.where(x, 1, 2)", "tl.where(True, x, 0)",
]  # fmt: skip


def test_functions_of_one_value(tmp_path):
    cases = [stored(expression, {"x": x}) for expression in UNARY for x in [*TYPES, "*fp16"]]
    assert not disagreements(compare(tmp_path, cases))


BINARY = [
    "tl.minimum(x, y)", "tl.maximum(x, y, tl.PropagateNan.ALL)", "tl.fdiv(x, y)", "tl.fdiv(x, y, ieee_rounding=True)",
    "tl.fdiv(x, y, approx=True)", "tl.div_rn(x, y)", "tl.umulhi(x, y)", "tl.clamp(x, y, y)", "tl.where(x, y, x)",
    "tl.where(x != 0, y, 2)", "tl.add(x, y, sanitize_overflow=False)", "tl.sub(x, y)", "tl.mul(x, y)", "tl.cdiv(x, y)",
    "tl.fma(x, y, x)",
]  # fmt: skip


@pytest.mark.parametrize("expression", BINARY)
def test_functions_of_two_values(tmp_path, expression):
    types = TYPES if FULL else ["i1", "u8", "i32", "u32", "fp8e5", "fp16", "fp32"]
    verdicts = compare(tmp_path, [stored(expression, {"x": x, "y": y}) for x in types for y in types])
    assert not disagreements(verdicts)


def test_logical_operators_take_any_number(tmp_path):
    """Deliberate: stock refuses `and`, `or` and `not` of runtime values other than int1, we compare them with zero."""
    expressions = ("x and y", "x or y", "not x", "x.logical_and(y)", "x.logical_or(y)")
    for verdict in compare(tmp_path, [stored(e, {"x": "i1", "y": "i1"}) for e in expressions]):
        assert verdict.agrees
        assert not isinstance(verdict.stock, str)
    for verdict in compare(tmp_path, [stored(e, {"x": "i32", "y": "fp32"}) for e in expressions]):
        assert isinstance(verdict.stock, str)
        assert not isinstance(verdict.ours, str)


def test_a_difference_is_found():
    case = stored("x", {"x": "i32"})
    assert not Verdict(case, ["tt.store 1"], ["tt.store 2"]).agrees
    assert not Verdict(case, "refused", ["tt.store 2"]).agrees
    assert disagreements([Verdict(case, "refused", ["tt.store 2"])])
