"""`tl.load` and `tl.store`: stock's IR for every option, and errors that say what does not fit."""

import pytest

from tests.unit.frontend.one_liners import assert_as_stock, assert_fault

pytestmark = pytest.mark.quick

F32 = {"x": "*fp32", "y": "*fp32", "n": "i32"}
P = "p = x + tl.arange(0, 64);; "

AS_STOCK = [
    (F32, "tl.store(y, tl.load(x) + 1)"),
    (
        F32,
        P + "v = tl.load(p, cache_modifier='.ca', eviction_policy='evict_last', volatile=True);; "
        "tl.store(p, v, cache_modifier='.wt', eviction_policy='evict_first')",
    ),
    (F32, P + "tl.store(p, tl.load(p, cache_modifier='.cg'), cache_modifier='.cs')"),
    (F32, P + "tl.store(p, tl.load(p, cache_modifier='.cv'), cache_modifier='.wb')"),
    (F32, P + "tl.store(p, tl.load(p, cache_modifier='.cs'))"),
    # Pointers as values: chosen, and stored as integers.
    (
        {"x": "*i64", "y": "*i64", "c": "*i1"},
        P + "b = tl.load(c + tl.arange(0, 64));; tl.store(p, tl.where(b, p, y));; tl.store(x, y);; "
        "q = tl.where(tl.load(c), x, y);; tl.store(p, tl.load(q + tl.arange(0, 64)))",
    ),
    (F32, P + "tl.store(p, tl.load(p, eviction_policy='evict_normal'), cache_modifier='.cg')"),
    # Masks, values and what stands for masked elements are broadcast and converted.
    (F32, P + "tl.store(p, tl.load(p, mask=n < 3, other=n), mask=n < 3)"),
    (F32, P + "tl.store(p, tl.load(p, True, 1.5), True);; tl.store(p, n, None)"),
    (F32, "tl.store(y, tl.load(x, n < 3, 1.5), n < 3)"),
    (F32, P + "tl.store(p, tl.load(p, n < 3, other=tl.arange(0, 64) < n));; tl.store(p, n < 3)"),
    # A wider mask makes more pointers of a load.
    (F32, P + "c = tl.arange(0, 8)[None, :];; tl.store(p[:, None] + c, tl.load(p[:, None], c < n))"),
    *(
        (
            {"x": f"*{element}", "n": "i32"},
            P + "tl.store(p, tl.load(p, n < 3, other=0));; tl.store(x, 1);; tl.store(p, True);; "
            "tl.store(p, 300);; tl.store(p, -5)",
        )
        for element in ("i1", "i8", "u8", "i16", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp64")
    ),
    *(
        (
            {"x": f"*{element}", "n": "i32"},
            P + "tl.store(p, tl.load(p, n < 3, other=0.5));; tl.store(x, 0.1);; tl.store(p, 0.1);; "
            "tl.store(p, 1e10);; tl.store(p, 1e-8);; tl.store(p, -1.7)",
        )
        for element in ("i1", "i8", "u8", "i32", "i64", "fp8e4nv", "fp8e5", "fp16", "bf16", "fp32", "fp64")
    ),
    ({"x": "*kfp32", "y": "*fp32"}, "tl.store(y + tl.arange(0, 8), tl.load(x + tl.arange(0, 8)))"),
    (
        {"x": "*fp32", "y": "*i64"},
        P + "tl.store(y + tl.arange(0, 64), tl.load(p.to(tl.pointer_type(tl.int1))))",
    ),
    (F32, "tl.store(x, float('-inf'));; tl.store(x, float('nan'));; tl.store(x, 16777217)"),
]


@pytest.mark.backend
@pytest.mark.parametrize(("signature", "body"), AS_STOCK)
def test_loads_and_stores_are_those_of_stock(tmp_path, signature, body):
    assert_as_stock(tmp_path, signature, body)


FAULTS = [
    ("tl.load(n)", "'pointer' must be a pointer or a block of pointers, found a runtime value of type", "n)"),
    ("tl.store(n, 3)", "'pointer' must be a pointer or a block of pointers, found a runtime value of type", "n, 3"),
    (
        "tl.store(k, 1.0)",
        "Cannot store to a constant pointer, found a runtime value of type const_pointer",
        "k, 1",
    ),
    ("tl.atomic_add(k, 1.0)", "Cannot store to a constant pointer", "k, 1"),
    ("tl.load(d)", "use its methods load and store", "d)"),
    ("tl.load(p, cache_modifier='.wt')", "must be one of '', '.ca', '.cg', '.cs', '.cv', found '.wt'", "'.wt'"),
    ("tl.store(p, 1, cache_modifier='.ca')", "must be one of '', '.wb', '.cg', '.cs', '.wt', found '.ca'", "'.ca'"),
    ("tl.load(p, eviction_policy='never')", "'evict_first', 'evict_last', found 'never'", "'never'"),
    ("tl.load(p, cache_modifier=3)", "'cache_modifier' must be a constexpr string, found the constexpr 3", "3)"),
    ("tl.load(p, volatile=n)", "'volatile' must be a constexpr bool", "n)"),
    ("tl.load(p, other=1.5)", "'other' needs a mask", "1.5"),
    ("tl.load(p, mask=n)", "'mask' must be an int1, such as a comparison, found a runtime value", "n)"),
    ("tl.load(x, p2 < n)", "'mask' must be a scalar because 'pointer' is one", "p2"),
    ("tl.load(x, n < 3, p2)", "'other' must be a scalar because 'pointer' is one", "p2"),
    ("tl.store(x, p2)", "'value' must be a scalar because 'pointer' is one, found a block", "p2"),
    ("tl.store(p, p2)", "'value' must broadcast to the pointers' shape [64], found [32]", "p2"),
    ("tl.store(p[:, None], p2[None, :])", "'value' must broadcast to the pointers' shape [64, 1]", "p2[None"),
    ("tl.store(p, 1, p2 < n)", "'mask' must broadcast to the pointers' shape [64], found [32]", "p2"),
    ("tl.load(p, p2 < n)", "do not broadcast", "tl.load"),
    ("tl.store(p, 'text')", "'value' must be a number or a block, found the constexpr 'text'", "'text'"),
    ("tl.store(p, x)", "tl.store: a pointer becomes an int64, an int1 or another pointer, found fp32", "tl.store"),
]


@pytest.mark.parametrize(("statement", "message", "at"), FAULTS)
def test_faults_of_loads_and_stores_are_located(tmp_path, statement, message, at):
    signature = {"x": "*fp32", "n": "i32", "d": "tensordesc<fp16[64, 64]>", "k": "*kfp32"}
    assert_fault(tmp_path, signature, P + "p2 = tl.arange(0, 32);; " + statement, message, at)
