"""Messages about a wrong argument: one sentence, at the argument's line."""

# covers: tl.math, tl.creation, libdevice

from __future__ import annotations

import pytest

from tests.unit.frontend.kernels import compile_source
from tlx_xdsl.errors import CompilationError

SIGNATURE = {
    "p": "*fp16", "i": "i32", "u": "u32", "b": "u8", "f": "fp32", "h": "fp16", "e": "fp8e5", "c": "fp8e4b15"
}  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("p == p", "pointers do not compare: cast them to int64 first"),
        ("p * 2", r"'\*' does not exist for pointers"),
        ("p + f", "a pointer moves by an integer, found a runtime value of type fp32"),
        ("f & 1", "invalid operands of type fp32 for '&'"),
        ("f // 2", "invalid operands of type fp32 for '//'"),
        ("f ** 2", r"'\*\*' exists between compile-time numbers only"),
        ("~f", "'~' exists for integers only, found a runtime value of type fp32"),
        ("-p", "'-' does not exist for a runtime value of type pointer<fp16>"),
        ("i // u", "Cannot use /, // or % with int32 and uint32 because they have different signedness"),
        ("b + 300", "300 is out of range for uint8"),
        ("b + -1", "cannot combine an unsigned uint8 with the negative number -1"),
        ("i + 2**64", "18446744073709551616 does not fit in 64 bits"),
        ("e + i", "cannot combine fp8e5 with int32: cast the 8-bit float first"),
        ("e.to(tl.int32)", "cannot convert fp8e5 to int32 directly, go through fp32"),
        ("c.to(tl.bfloat16)", "cannot convert fp8e4b15 to bf16 directly, go through fp16 or fp32"),
        ("c + c", r"invalid operands of type fp8e4b15 and fp8e4b15 for '\+'"),
        ("c < c", "fp8e4b15 does not compare: convert it to fp16 first"),
        ("f.to(tl.float8e4b8)", "type fp8e4b8 not supported in this architecture: it is AMD's"),
        ("i.to(tl.pointer_type(tl.int8))", "a pointer is made of an int64, found a runtime value of type int32"),
        ("i.to(tl.int8, bitcast=True)", "a bitcast keeps the number of bits, found 32 bits of int32 for 8 of int8"),
        ("i.to(tl.int8, fp_downcast_rounding='rtz')", "a rounding mode is for narrower floats only"),
        ("f.to(tl.float16, fp_downcast_rounding='up')", "must be one of 'rtne', 'rtz', found 'up'"),
        ("f.to(16)", "'dtype' must be an element type, found the constexpr 16"),
        ("tl.exp(h)", "'x' must be fp32 or fp64, found a runtime value of type fp16"),
        ("tl.umulhi(f, i)", "'x' must be int32 or int64 or uint32 or uint64, found a runtime value of type fp32"),
        ("tl.fdiv(i, i)", "fdiv takes floats, found integers"),
        ("tl.fma(i, i, i)", "fma takes floats, found a runtime value of type int32"),
        ("tl.full((4,), 1.5, tl.int32)", "expected an integer for int32, found 1.5"),
        ("tl.full((4,), tl.arange(0, 4), tl.int32)", "expected a scalar to fill the block with, found a block"),
        ("tl.full((3,), 1, tl.int32)", r"'shape' must hold powers of two, found \[3\]"),
        ("tl.full((2048, 2048), 1, tl.int32)", "a block has 1048576 elements at most, found 4194304"),
        ("tl.arange(0, 6)", "must have a power of two of elements, found 6"),
        ("tl.cat(tl.arange(0, 4), tl.arange(0, 8))", "both blocks must have one type and shape"),
        ("tl.arange(0, 4).reshape(2, 4)", r"'shape' must keep the 4 elements of the block, found \[2, 4\]"),
        ("tl.arange(0, 4).permute(1)", r"'dims' must be 0 in some order, found \[1\]"),
        ("tl.squeeze(tl.arange(0, 4), 0)", "'dim' must be a dimension of size 1 beside others"),
        ("tl.arange(0, 4).expand_dims(2)", "invalid axis 2: the result's are -2 to 1"),
        ("tl.split(tl.arange(0, 4))", "'a' must be a block whose last dimension has size 2"),
        ("tl.arange(0, 4).item()", "'self' must be a block of one element, found a block of type int32"),
        ("tl.extra.libdevice.acos(i)", r"expected arguments of types \(fp32\) or \(fp64\), found \(int32\)"),
        ("tl.program_id(3)", "program_id axis must be 0, 1, or 2 but got 3"),
    ],
)
def test_a_fault_is_located(tmp_path, expression, message):
    source = f"""
@tlx_xdsl.jit
def kernel({", ".join(SIGNATURE)}):
    first = i + 1
    second = {expression}
"""
    with pytest.raises(CompilationError, match=message) as caught:
        compile_source(tmp_path, source, SIGNATURE)
    assert caught.value.location.line == 9
