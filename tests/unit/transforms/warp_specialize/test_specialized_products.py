"""Products of consumers: asynchronous, pipelined and by turns, against the plain kernels and the examples."""

# covers: tlx-ws-async-dots, tlx-ws-pipeline-products, tlx-ws-take-turns

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i32
from xdsl.dialects.scf import ForOp

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.volume import is_full
from tlx_xdsl import CompilationError, TensorDescriptor
from tlx_xdsl.analysis.protocol.prove import prove
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.tt import DotOp, InputPrecision
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.driver.compilation import installed_profile
from tlx_xdsl.runtime.simulate.interpret import interpret_module
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import run_pipeline, ttgir_pipeline
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import forward, ops_of

EXAMPLES = Path(__file__).parents[4] / "examples"
DESCRIBED = TensorDescriptor.from_tensor


@tlx_xdsl.jit
def matmul(a_desc, b_desc, c_desc, n, BLOCK: tl.constexpr):
    acc = tl.zeros((64, BLOCK), tl.float32)
    for k in range(n):
        acc += tl.dot(a_desc.load([0, k * BLOCK]), b_desc.load([k * BLOCK, 0]))
    c_desc.store([0, 0], acc.to(c_desc.dtype))


@tlx_xdsl.jit
def persistent(a_desc, b_desc, c_desc, n, BLOCK: tl.constexpr):
    """Two tiles one after the other, whose loops use one ring."""
    for tile in range(2):
        acc = tl.zeros((64, BLOCK), tl.float32)
        for k in range(n):
            acc = tl.dot(a_desc.load([0, k * BLOCK]), tl.trans(b_desc.load([tile * BLOCK, k * BLOCK])), acc)
        c_desc.store([0, tile * BLOCK], acc.to(c_desc.dtype))


@tlx_xdsl.jit
def attention(a_desc, b_desc, c_desc, n, BLOCK: tl.constexpr):
    q = a_desc.load([0, 0])
    m = tl.full((64,), -1e6, tl.float32)
    total = tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, BLOCK), tl.float32)
    for k in range(0, n * BLOCK, BLOCK):
        scores = tl.dot(q, tl.trans(b_desc.load([k, 0])))
        m_new = tl.maximum(m, tl.max(scores, 1))
        p = tl.math.exp2(scores - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), b_desc.load([k, 0]), acc * alpha[:, None])
        m = m_new
    c_desc.store([0, 0], (acc / total[:, None]).to(tl.float16))


@tlx_xdsl.jit
def linear_attention(a_desc, b_desc, c_desc, n, BLOCK: tl.constexpr):
    """One slot for what a chunk loads, which both stages of a rotated loop read, and a result for each chunk."""
    h = tl.zeros((64, BLOCK), tl.float32)
    for chunk in range(n):
        q = a_desc.load([0, chunk * BLOCK])
        k = b_desc.load([chunk * BLOCK, 0])
        scores = tl.dot(q, tl.trans(k))
        o = tl.dot(q, h.to(tl.float16))
        o = tl.dot(tl.maximum(scores, 0.0).to(tl.float16), k, o)
        h = tl.dot(tl.trans(q), k, h)
        c_desc.store([0, chunk * BLOCK], o.to(tl.float16))


@tlx_xdsl.jit
def both_uses(a_desc, b_desc, c_desc, n, BLOCK: tl.constexpr):
    """Blocks that a product reads and that threads compute with, in registers and in place."""
    acc = tl.zeros((64, BLOCK), tl.float32)
    for k in range(n):
        a = a_desc.load([0, k * BLOCK])
        b = b_desc.load([k * BLOCK, 0])
        acc = tl.dot(a, b, acc) + tl.sum(a.to(tl.float32), 1)[:, None]
        acc = tl.dot((a * 2).to(tl.float16), (b + 1).to(tl.float16), acc * 0.5)
    c_desc.store([0, 0], acc.to(tl.float16))


KERNELS = [matmul, persistent, attention, linear_attention, both_uses]
SPECIALIZE = ("tlx-ws-form-tasks", "tlx-ws-pipeline-products", "tlx-ws-async-dots")


def arrays(n, element=np.float16):
    random = np.random.default_rng(n)
    a, b = ((random.standard_normal(shape) / 4).astype(element) for shape in ((64, 64 * 8), (64 * 8, 64 * 8)))
    return a, b, np.full((64, 64 * 8), np.nan, element)


def module_of(kernel, *passes, element="fp16"):
    """The module of a kernel on blocks of 64 x 64, after some passes."""
    signature = {name: f"tensordesc<{element}[64,64]>" for name in ("a_desc", "b_desc", "c_desc")}
    module = build_module(source_of(kernel), {**signature, "n": "i32"}, {"BLOCK": 64})
    specialized(module, passes)
    return module


def specialized(module, passes):
    """Apply passes; a ring has two slots."""
    for name in passes:
        options = {"depth": 2} if name == "tlx-ws-form-tasks" else {}
        pass_class(name)(**options).apply(Context(), module)
    verify_module(module)


def run(module, n, element=np.float16, stage="frontend"):
    """The result of a run; the run warns of nothing."""
    a, b, c = arrays(n, element)
    described = [DESCRIBED(each, [64, 64]) for each in (a, b, c)]
    args = {"a_desc": described[0], "b_desc": described[1], "c_desc": described[2], "n": n}
    assert not interpret_module(module.clone(), (1, 1, 1), args, Options(stage=stage, jobs=1)).warnings
    return c


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.source.symbol)
def test_the_tensor_cores_compute_what_the_plain_kernel_does(kernel):
    """Turns are fewer and more than slots, before and after the layouts; and the protocol is proved."""
    plain, module = module_of(kernel), module_of(kernel, *SPECIALIZE)
    assert "tt.dot" not in print_module(module)
    for n in (1, 2, 5):
        np.testing.assert_array_equal(run(module, n), run(plain, n))
    # Rows of an accumulator are reduced in another order there.
    np.testing.assert_allclose(run(module, 3, stage="ttgir"), run(plain, 3), rtol=2e-3)
    # The count of slots after an inner loop that may not run is more than the prover follows.
    assert [proof.answer for proof in prove(module.clone())] == ["unproved" if kernel is persistent else "proved"]


@pytest.mark.parametrize(
    ("kernel", "element", "precision", "products"),
    [
        (persistent, "fp32", "tf32", ["ttng.warp_group_dot"]),
        (persistent, "fp32", "ieee", ["tt.dot"]),
        (persistent, "fp8e4nv", "tf32", ["ttng.warp_group_dot"]),
        # Rows of B do not run along K: the tensor cores take no such tile of 32 bits.
        (matmul, "fp32", "tf32", ["ttg.local_store", "ttng.warp_group_dot"]),
    ],
)
def test_elements_that_a_wgmma_multiplies(kernel, element, precision, products):
    module = module_of(kernel, element=element)
    for dot in ops_of(module, DotOp):
        dot.input_precision = {"tf32": InputPrecision.TF32, "ieee": InputPrecision.IEEE}[precision].attr
    specialized(module, SPECIALIZE)
    names = {"ttg.local_store", "ttng.warp_group_dot", "tt.dot"}
    assert [op.name for op in module.walk() if op.name in names] == products


# --- as the examples do -----------------------------------------------------------------------------------------------


def example(name, kernel):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options = module.TLX_COMPILE[kernel]
    return build_module(source_of(getattr(module, kernel)), options["signature"], options["constexprs"])


def steps(module):
    """List the steps of the last task's innermost loop with barriers and products, with the count of a wait."""
    (tasks,) = ops_of(module, ttg.WarpSpecializeOp)
    loop = [op for op in tasks.partitions.partition_regions[-1].walk() if isinstance(op, ForOp)][-1]
    kinds = (ttng.WaitBarrierOp, ttng.ArriveBarrierOp, ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp)
    named = (tlx.NamedBarrierWaitOp, tlx.NamedBarrierArriveOp)
    found = [op for op in loop.body.block.ops if isinstance(op, (*kinds, *named))]
    return [
        f"{op.name} {op.pendings.value.data}" if isinstance(op, ttng.WarpGroupDotWaitOp) else op.name for op in found
    ]


@pytest.mark.parametrize(
    ("kernel", "name", "of_example"),
    [
        (matmul, "hopper_gemm_ws", "matmul"),
        (attention, "hopper_attention_pipelined", "attention"),
    ],
)
def test_loops_have_the_steps_of_the_examples(kernel, name, of_example):
    assert steps(module_of(kernel, *SPECIALIZE)) == steps(example(name, of_example))


def with_two_consumers(module):
    """Let both consumers do the same, as if each had its part of the rows."""
    (tasks,) = ops_of(module, ttg.WarpSpecializeOp)
    tasks.attributes["tlx.replicas"] = DenseArrayBase.from_list(i32, [2])
    for init in ops_of(module, ttng.InitBarrierOp):
        if "empty" in init.alloc.owner.src.name_hint:
            init.count = IntegerAttr(2, i32)
    return module


def test_two_consumers_take_turns():
    """The turns are the example's; both write the same result."""
    module = with_two_consumers(module_of(attention, *SPECIALIZE))
    specialized(module, ("tlx-ws-take-turns", "tlx-ws-replicate-tasks"))
    assert steps(module) == steps(example("hopper_attention_pingpong", "attention"))
    np.testing.assert_array_equal(run(module, 3), run(module_of(attention), 3))
    assert [proof.answer for proof in prove(module)] == ["proved"]


# --- what goes wrong otherwise ----------------------------------------------------------------------------------------


def check(module):
    """Look for uses of results in flight, then run the module."""
    pass_class("tlx-check-dots-in-flight")().apply(Context(), module)
    run(module, 5)


@pytest.mark.parametrize(
    "kernel", KERNELS if is_full() else [matmul, attention], ids=lambda kernel: kernel.source.symbol
)
def test_each_wait_is_needed_and_waits_for_enough(kernel):
    """A result is used or a slot given back too early without the wait, or with one product more in flight."""
    for number in range(len(ops_of(module_of(kernel, *SPECIALIZE), ttng.WarpGroupDotWaitOp))):
        for is_gone in (True, False):
            module = module_of(kernel, *SPECIALIZE)
            wait = ops_of(module, ttng.WarpGroupDotWaitOp)[number]
            if is_gone:
                forward(wait, wait.inputs[0])
            else:
                wait.pendings = IntegerAttr(wait.pendings.value.data + 1, i32)
            with pytest.raises((CompilationError, Fault)):
                check(module)


@pytest.mark.backend
@pytest.mark.parametrize(
    "kernel", [matmul, attention, *(KERNELS[3:] if is_full() else ())], ids=lambda kernel: kernel.source.symbol
)
def test_ptxas_keeps_products_in_flight(kernel):
    """No registers are spilled, and ptxas does not say that it serialises the products (C75..)."""
    module = module_of(kernel, *SPECIALIZE)
    profile = installed_profile()
    run_pipeline(module, ttgir_pipeline(profile), Context())
    made = compile_ttgir(print_module(module, profile=profile), BackendOptions())
    assert (made.resources.spill_store_bytes, made.resources.stack_bytes) == (0, 0)
    assert not [warning for warning in made.warnings if "C75" in warning.text]
