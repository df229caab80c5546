"""Products that are contracted with an addition, and those that are not."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import each_thread, kernel
from tlx_xdsl.ptx import run_ptx

A, B, C = (np.full(32, value, np.float32) for value in (1 + 2.0**-12, 1 + 2.0**-12, -1))
EXACT = np.float32(2.0**-11 + 2.0**-24)
"""A * B + C with one rounding."""
ROUNDED = np.float32(2.0**-11)
"""A * B loses 2**-24."""


def run(body):
    """The result in `%r1` for A, B and C in `%r10` to `%r12`."""
    return each_thread(body, *(each.view(np.uint32) for each in (A, B, C))).view(np.float32)[0]


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        ("add.f32 %r1, %r2, %r12;", EXACT),
        ("add.f32 %r1, %r12, %r2;", EXACT),
        ("neg.f32 %r3, %r12;\n    sub.f32 %r1, %r2, %r3;", EXACT),
        ("sub.f32 %r1, %r12, %r2;", np.float32(-2 - 2.0**-11)),
        ("add.rn.f32 %r1, %r2, %r12;", ROUNDED),
        ("add.ftz.f32 %r1, %r2, %r12;", ROUNDED),
    ],
)
def test_a_product_in_a_sum(total, expected):
    assert run(f"    mul.f32 %r2, %r10, %r11;\n    {total}") == expected


def test_what_is_not_contracted():
    """A rounding mode, another use, a guarded instruction or a label in between, an operand that is no longer there."""
    assert run("    mul.rn.f32 %r2, %r10, %r11;\n    add.f32 %r1, %r2, %r12;") == ROUNDED
    assert run("    mul.f32 %r2, %r10, %r11;\n    add.f32 %r1, %r2, %r12;\n    max.f32 %r3, %r2, %r2;") == ROUNDED
    between = {
        "    setp.eq.u32 %p1, %r0, 77;\n    @%p1 mov.b32 %r5, 0;\n": ROUNDED,
        "    bra next;\nnext:\n": ROUNDED,
        "    mov.b32 %r10, 0;\n": ROUNDED,
        "    mov.b32 %r5, 0;\n": EXACT,
    }
    for text, expected in between.items():
        assert run(f"    mul.f32 %r2, %r10, %r11;\n{text}    add.f32 %r1, %r2, %r12;") == expected, text


def test_two_sums_with_one_product():
    body = "    mul.f32 %r2, %r10, %r11;\n    add.f32 %r3, %r2, %r12;\n    sub.f32 %r4, %r12, %r2;\n"
    assert run(body + "    add.f32 %r1, %r3, %r4;") == np.float32(EXACT + np.float32(-2 - 2.0**-11))


def test_without_fusion():
    """`--fmad=false`."""
    text = kernel(
        "    ld.global.f32 %f1, [%rd0];\n    mul.f32 %f2, %f1, %f1;\n    add.f32 %f3, %f2, 0fBF800000;\n"
        "    st.global.f32 [%rd0], %f3;"
    )
    for fp_fusion, expected in ((True, EXACT), (False, ROUNDED)):
        x = A[:1].copy()
        run_ptx(text, 1, [x], fp_fusion=fp_fusion)
        assert x[0] == expected


def test_quotients():
    """The reciprocal of 3 is rounded, the product with it is not."""
    third, x = np.float32(1) / np.float32(3), np.full(32, 5, np.float32)
    exact = np.float32(np.float64(5) * third - np.float64(np.float32(5 * third)))
    values = [each.view(np.uint32) for each in (x, np.full(32, 3, np.float32), np.full(32, -(5 * third), np.float32))]
    for mode in ("full", "approx"):
        found = each_thread(f"    div.{mode}.f32 %r2, %r10, %r11;\n    add.f32 %r1, %r2, %r12;", *values)
        assert found.view(np.float32)[0] == exact != 0
    found = each_thread("    div.rn.f32 %r2, %r10, %r11;\n    add.f32 %r1, %r2, %r12;", *values)
    assert found.view(np.float32)[0] == np.float32(5) / np.float32(3) - np.float32(5 * third)
