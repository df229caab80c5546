"""Approximate functions have the bits of an H200.

`hardware/h200_functions.json` has, for each form, a hash of 64 results in each of the 512 ranges of one sign and one
exponent, and for some ranges four sums over their 2**21 results each: of the bits times pseudo-random odd numbers,
modulo 2**64. For functions of 16 bits it has a hash of all their results. All were computed on the GPU.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.ptx.snippets import each_thread, kernel
from tlx_xdsl.ptx import run_ptx
from tlx_xdsl.ptx.arithmetic.approximate import FUNCTIONS, division

KEPT = json.loads((Path(__file__).parent / "hardware" / "h200_functions.json").read_text(encoding="utf-8"))
RANGE = 1 << 23
FORMS = {f"{name}.approx{ftz}.f32": pair[bool(ftz)] for name, pair in FUNCTIONS.items() for ftz in ("", ".ftz")}
FORMS = {form: function for form, function in FORMS.items() if form != "tanh.approx.ftz.f32"}
QUOTIENTS = {f"div.{mode}{ftz}.f32": (mode == "full", bool(ftz)) for mode in ("full", "approx") for ftz in ("", ".ftz")}


def mixed(numbers):
    """splitmix64 of numbers of 64 bits."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bits_of(values):
    """The bits of results, all NaN as one."""
    return np.where(np.isnan(values), np.uint32(0x7FFFFFFF), values.view(np.uint32))


def in_range(number, fractions):
    """The numbers of a range of one exponent and one sign."""
    bits = fractions.astype(np.uint32) | np.uint32((number & 255) << 23 | number >> 8 << 31)
    return bits.view(np.float32)


@pytest.mark.parametrize("form", FORMS)
def test_samples_of_all_exponents(form):
    chosen = mixed(np.arange(56, dtype=np.uint64) + np.uint64(5 * RANGE)) & np.uint64(RANGE - 1)
    edges = [0, 1, 2, 3, RANGE - 1, RANGE - 2, RANGE // 2, RANGE // 2 - 1]
    fractions = np.concatenate([edges, chosen]).astype(np.uint32)
    arguments = np.concatenate([in_range(number, fractions) for number in range(512)])
    with np.errstate(all="ignore"):
        found = bits_of(FORMS[form](arguments))
    assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == KEPT[form]["samples"]


QUARTERS = [(form, number, part) for form in FORMS for number in KEPT[form]["sums"] for part in range(4)]


@pytest.mark.parametrize(("form", "number", "part"), QUARTERS if volume.is_full() else QUARTERS[1::13])
def test_sums_of_whole_ranges(form, number, part):
    fractions = np.arange(part * RANGE // 4, (part + 1) * RANGE // 4, dtype=np.uint64)
    total = np.uint64(0)
    for piece in np.split(fractions, 64):
        with np.errstate(all="ignore"):
            found = bits_of(FORMS[form](in_range(int(number), piece)))
            total += (found.astype(np.uint64) * (mixed(piece) | np.uint64(1))).sum(dtype=np.uint64)
    assert int(total.view(np.int64)) == KEPT[form]["sums"][number][part]


@pytest.mark.parametrize("form", QUOTIENTS)
def test_quotients_of_any_bits(form):
    is_full, is_flushed = QUOTIENTS[form]
    numbers = np.arange(1 << 14, dtype=np.uint64)
    a, b = ((mixed(numbers + np.uint64(k * RANGE)) >> np.uint64(32)).astype(np.uint32).view(np.float32) for k in (2, 3))
    with np.errstate(all="ignore"):
        found = bits_of(division(is_full=is_full, is_flushed=is_flushed)(a, b))
        total = (found.astype(np.uint64) * (mixed(numbers) | np.uint64(1))).sum(dtype=np.uint64)
    assert int(total.view(np.int64)) == KEPT[form]["sums"]["0"][0]


@pytest.mark.parametrize("form", [form for form in KEPT if "all" in KEPT[form]])
def test_all_results_of_16_bits(form):
    inputs = np.arange(1 << 16, dtype=np.uint32)
    body = f"""
    and.b32 %r2, %r10, 65535;
    cvt.u16.u32 %rs1, %r2;
    {form} %rs2, %rs1;
    {form}x2 %r3, %r10;
    cvt.u32.u16 %r1, %rs2;
    shr.u32 %r4, %r3, 16;
    shl.b32 %r4, %r4, 16;
    or.b32 %r1, %r1, %r4;"""
    text = kernel(ALL_INPUTS.replace("{body}", body), "**", threads=1024)
    out = np.zeros(1 << 16, np.uint32)
    run_ptx(text, 64, [out, inputs | inputs << 16])
    for half in (out & 0xFFFF, out >> 16):
        assert hashlib.sha256(half.astype(np.uint16).tobytes()).hexdigest()[:16] == KEPT[form]["all"]


ALL_INPUTS = """
    mov.u32 %r20, %ctaid.x;
    mad.lo.u32 %r20, %r20, 1024, %r0;
    ld.param.u64 %rd1, [p1];
    mad.wide.u32 %rd1, %r20, 4, %rd1;
    ld.global.b32 %r10, [%rd1];
    {body}
    mad.wide.u32 %rd2, %r20, 4, %rd0;
    st.global.b32 [%rd2], %r1;"""


def through_the_machine(opcode, *operands):
    arrays = [np.resize(np.array(each, np.float32), 32).view(np.uint32) for each in operands]
    registers = ", ".join(f"%r{10 + place}" for place in range(len(arrays)))
    return each_thread(f"    {opcode} %r1, {registers};", *arrays).view(np.float32)[: len(operands[0])]


def test_forms_of_the_machine():
    """Compute subnormals, with and without `.ftz`, and divisors near the limits; each form takes its own function."""
    tiny = np.float32(2.0**-130)
    assert (through_the_machine("ex2.approx.f32", [-130, -200, 3]) == [tiny, 0, 8]).all()
    assert (through_the_machine("ex2.approx.ftz.f32", [-130, -200, 3]) == [0, 0, 8]).all()
    assert (through_the_machine("lg2.approx.f32", [tiny, 8]) == [-130, 3]).all()
    assert (through_the_machine("lg2.approx.ftz.f32", [tiny, 8]) == [-np.inf, 3]).all()
    assert (through_the_machine("rcp.approx.f32", [2.0**127, tiny]) == [2.0**-127, np.inf]).all()
    assert (through_the_machine("rcp.approx.ftz.f32", [2.0**127, tiny]) == [0, np.inf]).all()
    assert (through_the_machine("rsqrt.approx.f32", [tiny, 4]) == [2.0**65, 0.5]).all()
    assert (through_the_machine("sqrt.approx.f32", [tiny, 4]) == [2.0**-65, 2]).all()
    assert (through_the_machine("div.full.f32", [2.0**127, tiny], [2.0**127, tiny]) == [1, 1]).all()
    assert (through_the_machine("div.approx.f32", [2.0**127, tiny], [2.0**127, tiny]) == [0, 1]).all()
    assert (through_the_machine("div.rn.f32", [1.0], [3.0]) == np.float32(1) / np.float32(3)).all()
    third = through_the_machine("rcp.rn.f32", [3.0])
    assert third == np.float32(1) / np.float32(3)
