"""Arithmetic on four 8-bit floats at once: numpy in double precision, rounded once, is the oracle."""

# covers: tlx.packed, ttng.packed

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations.stages import STAGES, at
from tests.versions import NEWEST, only_on
from tlx_xdsl.numerics.matmul import unpack_e2m1
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization

E5, E4 = ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn


@tlx_xdsl.jit
def packed(a_ptr, b_ptr, pairs_ptr, out_ptr, OP: tl.constexpr):
    i, half = tl.arange(0, 512), tl.arange(0, 256)
    a, b, pairs = tl.load(a_ptr + i), tl.load(b_ptr + i), tl.load(pairs_ptr + half)
    # The compiler gives plain kernels to stock Triton without layouts of its own.
    tlx.local_alloc((512,), tl.int8, 1)
    if OP == "add":
        result = tlx.packed_add4(a, b)
    elif OP == "sub":
        result = tlx.packed_sub4(pairs, b, dtype=tl.float8e4nv)
    elif OP == "mul":
        result = tlx.packed_mul4(a, pairs)
    elif OP == "mul of pairs":
        result = tlx.packed_mul4(pairs, pairs, tl.float8e5)
    else:
        result = tlx.packed_fma4(a, pairs, b)
    tl.store(out_ptr + i, result)


EXPECTED = {
    "add": (lambda a, b, p: a + b, E4, "add.e4m3x4.e5m2x4"),
    "sub": (lambda a, b, p: p - b, E4, "sub.e4m3x4.e2m1x4"),
    "mul": (lambda a, b, p: a * p, E5, "mul.e5m2x4.e5m2x4.e2m1x4"),
    "mul of pairs": (lambda a, b, p: p * p, E5, "mul.e5m2x4.e2m1x4.e2m1x4"),
    "fma": (lambda a, b, p: a * p + b, E4, "fma.e4m3x4.e5m2x4.e2m1x4"),
}


@pytest.mark.parametrize("stage", STAGES[:2])
@pytest.mark.parametrize("operation", EXPECTED)
def test_results_are_rounded_once(operation, stage):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(512).astype(E5), rng.standard_normal(512).astype(E4)
    pairs = rng.integers(-128, 128, 256).astype(np.int8)
    compute, dtype, _ = EXPECTED[operation]
    out = np.zeros(512, dtype)
    tlx_xdsl.interpret(packed, 1, a, b, pairs, out, operation, target="sm_103a", jobs=1, **at(stage))
    values = (each.astype(np.float64) for each in (a, b, unpack_e2m1(pairs, 0)))
    np.testing.assert_array_equal(out.astype(np.float64), compute(*values).astype(dtype).astype(np.float64))


@pytest.mark.backend
@only_on(NEWEST, "packed arithmetic needs the ptxas of")
def test_stock_triton_and_ptxas_take_it():
    for operation, (_, dtype, instruction) in EXPECTED.items():
        signature = {"a_ptr": "*fp8e5", "b_ptr": "*fp8e4nv", "pairs_ptr": "*i8"}
        signature["out_ptr"] = "*fp8e5" if dtype is E5 else "*fp8e4nv"
        result = compile_kernel(packed, Specialization(signature, {"OP": operation}, target="sm_103a"))
        assert instruction in result.ptx
        assert result.cubin
