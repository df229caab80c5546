"""Inline assembly over elements: packs, widths of registers, and what the interpreter does not run."""

# covers: tl.matrix, tt.elementwise

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.interpreter.faults import Fault

RNG = np.random.default_rng(5)


@tlx_xdsl.jit
def bytes_kernel(x, out):
    """Four bytes in a register."""
    index = tl.arange(0, 64)
    asm: tl.constexpr = "prmt.b32 $0, $1, 0, 0x0123;"
    turned = tl.inline_asm_elementwise(asm, "=r,r", [tl.load(x + index)], dtype=tl.int8, is_pure=True, pack=4)
    tl.store(out + index, turned)


def test_four_bytes_are_packed_into_a_register():
    x, out = RNG.integers(-128, 128, 64).astype(np.int8), np.zeros(64, np.int8)
    tlx_xdsl.interpret(bytes_kernel, (1,), x, out)
    assert out.tolist() == x.reshape(-1, 4)[:, ::-1].ravel().tolist()


@tlx_xdsl.jit
def halves_kernel(x, y, out):
    """Two pairs of halves: each operand has two registers."""
    index = tl.arange(0, 64)
    total = tl.inline_asm_elementwise(
        "add.rn.f16x2 $0, $2, $4; add.rn.f16x2 $1, $3, $5;", "=r,=r,r,r,r,r",
        [tl.load(x + index), tl.load(y + index)], dtype=tl.float16, is_pure=True, pack=4,
    )  # fmt: skip
    tl.store(out + index, total)


def test_a_pack_of_several_registers():
    x, y = (RNG.standard_normal(64).astype(np.float16) for _ in range(2))
    out = np.zeros(64, np.float16)
    tlx_xdsl.interpret(halves_kernel, (1,), x, y, out)
    np.testing.assert_array_equal(out, x + y)


@tlx_xdsl.jit
def narrow_kernel(x, out):
    """Write 8-bit floats as kernels do by hand: two f32 become two bytes of one register."""
    index = tl.arange(0, 64)
    asm: tl.constexpr = """
    {
        .reg .b16 low, high;
        cvt.rn.satfinite.e4m3x2.f32 low, $2, $1;
        cvt.rn.satfinite.e4m3x2.f32 high, $4, $3;
        mov.b32 $0, {low, high};
    }
    """
    a = tl.load(x + index)
    packed = tl.inline_asm_elementwise(asm, "=r,f,f,f,f", [a], dtype=tl.float8e4nv, is_pure=True, pack=4)
    tl.store(out + index, packed)


def test_floats_are_packed_into_bytes():
    x = (RNG.standard_normal(64) * 300).astype(np.float32)
    out = np.zeros(64, ml_dtypes.float8_e4m3fn)
    tlx_xdsl.interpret(narrow_kernel, (1,), x, out)
    expected = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))


@tlx_xdsl.jit
def scalar_kernel(n, out):
    """Scalars, two results, and a result that begins as an argument."""
    low, high = tl.inline_asm_elementwise(
        "mul.lo.s32 $0, $2, $3; mul.hi.s32 $1, $2, $3;", "=r,=r,r,r", [n, n], dtype=(tl.int32, tl.int32), is_pure=True,
        pack=1,
    )  # fmt: skip
    tl.store(out, low)
    tl.store(out + 1, high)
    tl.store(out + 2, tl.inline_asm_elementwise("add.s32 $0, $0, 1;", "=r,0", [n], tl.int32, True, 1))
    tl.store(out + 3, tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x;", "=r", [], tl.int32, False, 1))


def test_scalars_and_tied_registers():
    out = np.zeros(4, np.int32)
    tlx_xdsl.interpret(scalar_kernel, (1,), 100_000, out)
    assert out.tolist() == [(100_000**2) & 0x7FFFFFFF, 2, 100_001, 0]


@tlx_xdsl.jit
def unknown_kernel(x, ASM: tl.constexpr):
    a = tl.load(x + tl.arange(0, 32))
    tl.store(x + tl.arange(0, 32), tl.inline_asm_elementwise(ASM, "=r,r", [a], dtype=tl.int32, is_pure=False, pack=1))


@pytest.mark.parametrize(
    ("asm", "message"),
    [
        ("mov.u32 $0, %laneid;", "the interpreter runs the threads of a task as one: they differ in '%laneid'"),
        ("redux.sync.add.s32 $0, $1, -1;", "can't run the PTX instruction 'redux.sync.add.s32 $0, $1, -1'"),
        ("add.s32 $0, $1, nothing;", "no register or number 'nothing'"),
    ],
)
def test_what_cannot_run_is_a_fault_at_the_call(asm: str, message: str):
    with pytest.raises(Fault) as found:
        tlx_xdsl.interpret(unknown_kernel, (1,), np.zeros(32, np.int32), asm)
    assert message in found.value.message
    assert "tl.inline_asm_elementwise" in (found.value.source_line or "")
