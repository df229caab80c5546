"""Atomic operations: stock's IR for each operation, type, ordering and scope."""

import pytest

from tests.unit.frontend.one_liners import assert_as_stock, assert_fault

P = "p = x + tl.arange(0, 4);; "
I32 = {"x": "*i32", "n": "i32", "m": "i64", "h": "*i16", "b": "*i1"}
INTEGERS = ("i32", "u32", "i64", "u64")
TYPES = {
    "add": (*INTEGERS, "fp16", "bf16", "fp32", "fp64"),
    "max": (*INTEGERS, "fp32", "fp64"),
    "min": (*INTEGERS, "fp32", "fp64"),
    "and": INTEGERS,
    "or": INTEGERS,
    "xor": INTEGERS,
    "xchg": (*INTEGERS, "fp32", "fp64"),
}


@pytest.mark.backend
@pytest.mark.parametrize(("name", "element"), [(name, element) for name in TYPES for element in TYPES[name]])
def test_read_modify_writes_are_those_of_stock(tmp_path, name, element):
    signature = {"x": f"*{element}", "n": element}
    body = (
        P + f"tl.store(x, tl.atomic_{name}(x, n));; "
        f"tl.store(p, tl.atomic_{name}(p, n, tl.arange(0, 4) < 2, sem='relaxed', scope='sys'))"
    )
    assert_as_stock(tmp_path, signature, body)


AS_STOCK = [
    ({"x": "*fp32", "n": "i32"}, P + "tl.store(p, tl.atomic_max(p, tl.load(p), n > 3));; tl.atomic_max(x, 1.0)"),
    (
        {"x": "*fp32", "n": "i32"},
        P + "tl.atomic_add(p, 1, mask=n < 3, sem='relaxed', scope='cta');; tl.atomic_add(p, n, sem='release');; "
        "tl.atomic_add(p, n, sem='acquire', scope='gpu');; tl.atomic_add(p, n, sem='acq_rel')",
    ),
    (I32, P + "tl.store(p, tl.atomic_cas(p, tl.load(p), tl.load(p)))"),
    (I32, "tl.store(x, tl.atomic_cas(x, n, 1, sem='relaxed', scope='cta'))"),
    (I32, P + "tl.store(p, tl.atomic_load(p));; tl.atomic_load(x, n < 3, sem='relaxed', scope='sys')"),
    (I32, P + "tl.atomic_store(p, n);; tl.atomic_store(x, 1, n < 3, sem='relaxed');; tl.atomic_store(p, 1.5, n < 3)"),
    (I32, "tl.atomic_store(b, tl.atomic_load(b))"),
    (I32, P + "tl.store(p, tl.atomic_poll(p, 1));; tl.atomic_poll(x, n, sem='relaxed', timeout_ns=1000)"),
    (I32, P + "tl.atomic_poll(p, tl.arange(0, 4), timeout_ns=n);; tl.atomic_poll(h, 1, timeout_ns=m)"),
]


@pytest.mark.backend
@pytest.mark.parametrize(("signature", "body"), AS_STOCK)
def test_atomic_operations_are_those_of_stock(tmp_path, signature, body):
    assert_as_stock(tmp_path, signature, body)


FAULTS = [
    ("tl.atomic_add(n, 1)", "'pointer' must be a pointer or a block of pointers", "n, 1"),
    ("tl.atomic_add(h, 1)", "'pointer' must point to one of", "h, 1"),
    ("tl.atomic_max(f16, 1)", "'pointer' must point to one of", "f16"),
    ("tl.atomic_and(f32, 1)", "'pointer' must point to one of", "f32"),
    ("tl.atomic_cas(b, 0, 1)", "'pointer' must point to one of", "b, 0"),
    ("tl.atomic_poll(f32, 1.0)", "'pointer' must point to one of", "f32"),
    ("tl.atomic_add(x, 1, sem='rel')", "'sem' must be one of 'acquire', 'release', 'acq_rel', 'relaxed'", "'rel'"),
    ("tl.atomic_load(x, sem='release')", "'sem' must be one of 'acquire', 'relaxed', found 'release'", "'release'"),
    ("tl.atomic_store(x, 1, sem='acquire')", "'sem' must be one of 'release', 'relaxed', found", "'acquire'"),
    ("tl.atomic_add(x, 1, scope='warp')", "'scope' must be one of 'gpu', 'cta', 'sys', found 'warp'", "'warp'"),
    ("tl.atomic_add(p, 1, mask=n)", "'mask' must be an int1", "n)"),
    ("tl.atomic_add(x, tl.arange(0, 4))", "'val' must be a scalar because 'pointer' is one", "tl.arange"),
    ("tl.atomic_add(p, tl.arange(0, 8))", "'val' must broadcast to the pointers' shape [4], found [8]", "tl.arange"),
    ("tl.atomic_cas(p, tl.arange(0, 8), n)", "'cmp' must broadcast to the pointers' shape [4]", "tl.arange"),
    ("tl.atomic_poll(x, 1, timeout_ns=-1)", "'timeout_ns' must be an integer of at least 0, found", "-1"),
    ("tl.atomic_poll(x, 1, timeout_ns=1.5)", "'timeout_ns' must be an integer of at least 0, found", "1.5"),
]


@pytest.mark.parametrize(("statement", "message", "at"), FAULTS)
def test_faults_of_atomic_operations_are_located(tmp_path, statement, message, at):
    signature = {**I32, "f16": "*fp16", "f32": "*fp32"}
    assert_fault(tmp_path, signature, P + statement, message, at)
