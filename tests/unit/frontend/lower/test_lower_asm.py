"""Code for each element: inline PTX and mapped functions."""

import pytest

from tests.unit.frontend.one_liners import assert_as_stock, assert_fault

SIGNATURE = {"x": "*fp32", "y": "*i32", "w": "*i64", "n": "i32", "f": "fp32"}
A = "a = tl.arange(0, 64);; g = tl.load(x + a);; "

ASM = [
    'tl.store(y + a, tl.inline_asm_elementwise("not.b32 $0, $1;", "=r,r", [a], tl.int32, True, 1))',
    'tl.inline_asm_elementwise(asm="//", constraints="=r,r,r", args=[a, n], dtype=tl.int32, is_pure=False, pack=2)',
    'c, d = tl.inline_asm_elementwise("//", "=r,=r,r,r", [a[:, None], g[None, :]], (tl.int32, tl.float32), True, 4);; '
    "i = a[:, None] * 64 + a[None, :];; tl.store(y + i, c);; tl.store(x + i, d)",
    'tl.store(y, tl.inline_asm_elementwise("mov.u32 $0, 1;", "=r", [], tl.int32, True, 1))',
    'tl.store(y, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [3], tl.int32, True, 1))',
    'tl.store(y, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [f], (tl.int32,), True, 1)[0])',
    'tl.store(w + a, tl.inline_asm_elementwise("mov.b64 $0, $1;", "=l,l", [x + a], tl.int64, True, 1))',
]


@pytest.mark.backend
@pytest.mark.parametrize("body", ASM)
def test_inline_asm_is_that_of_stock(tmp_path, body):
    assert_as_stock(tmp_path, SIGNATURE, A + body)


MAPPED = [
    ("a + 1", "a", "tl.store(y + a, tl.map_elementwise(each, a))"),
    ("a, b + 1", "a, b", "c, d = tl.map_elementwise(each, g, a);; tl.store(x + a, c);; tl.store(y + a, d)"),
    ("a * 1.5", "a, b", "tl.store(x + a[:, None] + a[None, :], tl.map_elementwise(each, a[:, None], a[None, :]))"),
    ("a + b, b", "a, b", "tl.store(y + a, tl.map_elementwise(each, a, pack=2)[0])"),
    (
        "a, b, c, d",
        "a, b, c, d",
        "c, d = tl.map_elementwise(each, g, a, pack=2);; tl.store(x + a, c);; tl.store(y + a, d)",
    ),
    ("a if a > b else b", "a, b", "tl.store(y + a, tl.map_elementwise(each, a, n))"),
]


@pytest.mark.backend
@pytest.mark.parametrize(("result", "parameters", "body"), MAPPED)
def test_mapped_functions_are_those_of_stock(tmp_path, result, parameters, body):
    helper = f"@triton.jit\ndef each({parameters}):\n    return {result}\n"
    assert_as_stock(tmp_path, SIGNATURE, A + body, helper=helper)


@pytest.mark.backend
@pytest.mark.parametrize(
    "statements",
    [
        "    if a > 3:\n        return a + 1\n    return a * 2\n",
        "    s = a\n    for i in range(a):\n        s += i\n    return s\n",
        "    s = a\n    if a > 5:\n        s = a * 3\n    return s\n",
    ],
)
def test_mapped_functions_may_branch_and_loop(tmp_path, statements):
    helper = f"@triton.jit\ndef each(a):\n{statements}"
    assert_as_stock(tmp_path, SIGNATURE, A + "tl.store(y + a, tl.map_elementwise(each, a))", helper=helper)


ASM_OF = 'tl.inline_asm_elementwise("//", "=r,r", '
FAULTS = [
    (ASM_OF + "a, tl.int32, True, 1)", "'args' must be a tuple of numbers and blocks, found a block", "a, tl"),
    (ASM_OF + "[a, 'b'], tl.int32, True, 1)", "'args' must hold numbers and blocks, found the constexpr 'b'", "[a"),
    (ASM_OF + "[a, tl.arange(0, 32)], tl.int32, True, 1)", "do not broadcast", "[a"),
    (ASM_OF + "[a], 3, True, 1)", "'dtype' must be an element type, or a tuple", "3, True"),
    (ASM_OF + "[a], (), True, 1)", "'dtype' must be an element type, or a tuple of at least one", "(), True"),
    (ASM_OF + "[a], tl.int32, n, 1)", "'is_pure' must be a constexpr bool", "n, 1"),
    (ASM_OF + "[a], tl.int32, True, 0)", "'pack' must be a constexpr integer of at least 1", "0)"),
    (ASM_OF + "[a], tl.int32, True, 3)", "'pack' must divide the 64 elements, found 3", "3)"),
    ("tl.inline_asm_elementwise(n, '=r,r', [a], tl.int32, True, 1)", "'asm' must be a constexpr string", "n, '="),
    ("tl.map_elementwise(tl.abs, a)", "'scalar_fn' must be a jitted function", "tl.abs"),
    ("tl.map_elementwise(n, a)", "'scalar_fn' must be a jitted function", "n, a"),
]


@pytest.mark.parametrize(("statement", "message", "at"), FAULTS)
def test_faults_of_asm_are_located(tmp_path, statement, message, at):
    assert_fault(tmp_path, SIGNATURE, A + statement, message, at)
