"""Groups of warps that share the rows: what each of them computes, together, is what one would."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Block, Region

from tests.unit.transforms.warp_specialize import plain_kernels
from tests.unit.transforms.warp_specialize.plain_kernels import Numbers
from tlx_xdsl import TensorDescriptor, interpret_text
from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import constant, forward, ops_of

TILE = {"BM": 128, "BN": 64, "BK": 32}


def matmul(numbers: Numbers, m=150, n=72, k=72, **constexprs):
    args = {
        "a_ptr": numbers.half(m, k), "b_ptr": numbers.half(k, n), "bias_ptr": numbers.single(max(m, n)),
        "c_ptr": numbers.result(m, n), "M": m, "N": n, "K": k,
    }  # fmt: skip
    return (-(-m // 128), -(-n // 64)), args, {**TILE, "BIAS": "", "GELU": False, **constexprs}


def matmul_by_descriptors(numbers: Numbers, m=200, n=72, k=64):
    a, b = numbers.half(m, k), numbers.half(n, k)
    descriptors = {"a_desc": (a, (128, 32)), "b_desc": (b, (64, 32))}
    args = {**descriptors, "c_ptr": numbers.result(m, n), "M": m, "N": n, "K": k}
    return (2, 2), args, TILE


def gated(numbers: Numbers, m=140, n=56, k=40):
    weights = {"w_ptr": numbers.half(k, n), "u_ptr": numbers.half(k, n)}
    args = {"x_ptr": numbers.half(m, k), **weights, "out_ptr": numbers.result(m, n), "M": m, "N": n, "K": k}
    return (2, 1), args, TILE


def attention(numbers: Numbers, length=200, heads=2, **constexprs):
    shape = (heads, length, 32)
    args = {name: numbers.half(*shape) for name in ("q_ptr", "k_ptr", "v_ptr")}
    args |= {"bias_ptr": numbers.half(length, length), "out_ptr": numbers.result(*shape)}
    args |= {"lse_ptr": numbers.result(heads, length, dtype=np.float32), "length": length, "scale": 0.2}
    return (2, heads), args, {"BM": 128, "BN": 64, "D": 32, "CAUSAL": False, "BIAS": False, **constexprs}


def cross_entropy(numbers: Numbers, m=130, v=88, d=40):
    labels = numbers.random.integers(0, v, m, dtype=np.int32)
    args = {"x_ptr": numbers.half(m, d), "w_ptr": numbers.half(d, v), "labels_ptr": labels}
    args |= {"loss_ptr": numbers.result(m, dtype=np.float32), "M": m, "V": v, "D": d}
    return (2,), args, {"BM": 128, "BV": 64, "BD": 32}


def chunk_states(numbers: Numbers, length=100, *, delta: bool):
    chunks, (d, e) = -(-length // 32), (64, 128) if delta else (128, 32)
    args = {"k_ptr": numbers.half(2, length, d), "v_ptr": numbers.half(2, length, e)}
    args |= {"w_ptr": numbers.half(2, length, d), "gate_ptr": -abs(numbers.single(2, chunks))}
    args |= {"h_ptr": numbers.result(2, chunks, d, e), "out_ptr": numbers.result(2, length, e), "length": length}
    return (2,), args, {"D": d, "E": e, "C": 64, "DELTA": delta}


def chunk_outputs(numbers: Numbers, length=200):
    args = {name: numbers.half(length, 32) for name in ("q_ptr", "k_ptr", "v_ptr")}
    args |= {"decay_ptr": numbers.single(length), "out_ptr": numbers.result(length, 32), "length": length}
    return (2,), args, {"D": 32, "C": 128}


def signature_of(value) -> str:
    if isinstance(value, tuple):
        return f"tensordesc<fp16{list(value[1])}>"
    if isinstance(value, np.ndarray):
        return {"float16": "*fp16:16", "float32": "*fp32:16", "int32": "*i32:16"}[str(value.dtype)]
    return "fp32" if isinstance(value, float) else "i32"


def build(kernel: str, args, constexprs) -> ModuleOp:
    signature = {name: signature_of(value) for name, value in args.items()}
    return build_module(source_of(getattr(plain_kernels, kernel)), signature, constexprs)


def one_after_the_other(module: ModuleOp, groups: int) -> None:
    """Let each program do the parts of all groups in turn."""
    (function,) = ops_of(module, FuncOp)
    block = function.body.block
    inside, end = list(block.ops)[:-1], block.last_op
    for op in inside:
        op.detach()
    bounds = [constant(number, i32) for number in (0, groups, 1)]
    body = Block([*inside, scf.YieldOp()], arg_types=[i32])
    block.insert_ops_before([*bounds, scf.ForOp(*bounds, [], Region(body))], end)
    for number in ops_of(function, ReplicaIdOp):
        forward(number, body.args[0])


def run(module: ModuleOp, grid, args, groups: int = 1):
    """The arrays after a launch; a descriptor's box has the rows of a group."""
    arrays = {name: value.copy() for name, value in args.items() if isinstance(value, np.ndarray)}
    (function,) = ops_of(module, FuncOp)
    types = {argument.name_hint: argument.type for argument in function.body.block.args}
    given = {
        name: TensorDescriptor.from_tensor(value[0], list(types[name].shape)) if isinstance(value, tuple) else value
        for name, value in args.items()
    }
    interpret_text(print_module(module), grid, given | arrays)
    return arrays


CASES = {
    "matmul": ("matmul", matmul, {}),
    "bias of rows": ("matmul", matmul, {"BIAS": "rows", "m": 97}),
    "bias of columns, GELU": ("matmul", matmul, {"BIAS": "columns", "GELU": True}),
    "descriptors": ("matmul_by_descriptors", matmul_by_descriptors, {}),
    "gated": ("gated", gated, {}),
    "attention": ("attention", attention, {"BIAS": True}),
    "causal attention": ("attention", attention, {"CAUSAL": True}),
    "cross entropy": ("cross_entropy", cross_entropy, {}),
    "outputs of chunks": ("chunk_outputs", chunk_outputs, {}),
    "states": ("chunk_states", chunk_states, {"delta": False}),
    "states of the delta rule": ("chunk_states", chunk_states, {"delta": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_groups_together_compute_what_one_does(case):
    kernel, arguments, options = CASES[case]
    grid, args, constexprs = arguments(Numbers(len(case)), **options)
    plain, split = build(kernel, args, constexprs), build(kernel, args, constexprs)
    pass_class("tlx-ws-split-rows")(groups=2).apply(Context(), split)
    (function,) = ops_of(split, FuncOp)
    assert "tlx.replicas" in function.attributes
    verify_module(split)
    one_after_the_other(split, 2)
    expected, found = run(plain, grid, args), run(split, grid, args, 2)
    for name, value in expected.items():
        # Sums of products differ in the last bit: BLAS adds up matrices of other sizes in another order.
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-4, err_msg=name)
