"""The layouts of accesses to global memory: beside matrix instructions, and against stock Triton's `coalesce`."""

import re
from collections import Counter

import numpy as np
import pytest

import tlx_xdsl
from tests.oracle import loading, ours
from tests.unit.frontend.kernels import load
from tests.unit.transforms.attention_with_bias import SIGNATURE, attention
from tests.unit.volume import is_full
from tests.versions import INSTALLED, NEWEST, is_installed
from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.backend import BackendError, BackendOptions
from tlx_xdsl.backend.stock_passes import StockPass, runs_coalesce
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.layouts import layout_of
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.transforms.pipelines import run_pipeline, ttgir_pipeline
from tlx_xdsl.transforms.tritongpu.access_layouts import coalesced_layout

EXPONENTIALS = 2 * (64 + 2)
"""Of two consumers: 64 of a tile of 64 x 128 in each of 128 threads, and one for each of its two rows."""

PLACES = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.backend
@pytest.mark.parametrize(("before", "moving"), PLACES)
def test_a_bias_does_not_double_the_softmax(before, moving):
    constexprs = {"BEFORE": before, "MOVING": moving, "STAGES": 2}
    result = compile_kernel(attention, Specialization(SIGNATURE, constexprs))
    converts = [line for line in result.ttgir.splitlines() if "ttg.convert_layout" in line]
    # P becomes the operand of a dot, in the same registers; the output is stored in wide vectors after the loop.
    assert len(converts) == 4
    assert sum("#ttg.dot_op" in line for line in converts) == 2
    assert result.ptx.count("ex2.approx") == EXPONENTIALS
    assert (result.resources.spill_store_bytes, result.resources.spill_load_bytes) == (0, 0)
    # Two neighbouring elements of 16 bits in each load, as they lie in the accumulator.
    assert len(re.findall(r"ld\.global\.b32", result.ptx)) == 64


@pytest.mark.parametrize(("before", "moving"), PLACES)
def test_the_attention_with_bias_is_right(before, moving):
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((size, 128)).astype(np.float16) for size in (128, 256, 256))
    bias = rng.standard_normal((128, 256)).astype(np.float16)
    out = np.full((128, 128), np.nan, np.float16)
    descriptors = [
        tlx_xdsl.TensorDescriptor.from_tensor(array, [rows, 128]) for array, rows in ((q, 64), (k, 128), (v, 128))
    ]
    constexprs = {"BEFORE": before, "MOVING": moving, "STAGES": 2}
    attention.interpret((1,), *descriptors, bias, out, 256, 0.125, **constexprs, stage="ttgir")
    scores = (q.astype(float) @ k.astype(float).T) * 0.125 + bias
    weights = np.exp2(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(float)
    np.testing.assert_allclose(out, expected, atol=4e-3)


def test_coalesce_of_stock_triton_keeps_out_of_modules_with_matrix_instructions():
    assert runs_coalesce('tt.load %p\n%w = "ttng.warp_group_dot_wait"(%d)')
    assert not runs_coalesce("%d = ttng.warp_group_dot %a, %b, %c")
    assert not runs_coalesce('"ttng.warp_group_dot"(%a, %b, %c)')
    assert not runs_coalesce("ttng.tc_gen5_mma_scaled %a, %b, %c")


# --- against stock Triton's pass ------------------------------------------------------------------------------------

ACCESSES = (tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp)
WIDENED = {"precisions", "scaled_products"}
"""Kernels in which stock gives a load more elements per thread than one instruction takes, as another load has them."""
OTHERWISE = WIDENED | {"hints"}
"""In `hints` stock takes an index for a multiple of 4 along an axis along which it is not."""


def accesses(module):
    return [op for op in module.walk() if isinstance(op, ACCESSES) and as_tensor(op.ptr.type) is not None]


def layouts_of_stock(module, tmp_path):
    """Return the layouts that stock's `coalesce` gives our TTGIR, in the order of the accesses."""
    from tlx_xdsl.backend.triton_api import StockModule

    path = tmp_path / "kernel.ttgir"
    path.write_text(print_module(module, profile=profile_for(INSTALLED)))
    stock = StockModule(path, BackendOptions())
    stock.run_passes([StockPass("ttgpuir", "coalesce", "to compare with")])
    return [layout_of(as_tensor(op.ptr.type).encoding) for op in accesses(parse_module(stock.text()))]


def _compared(layout):
    """Return the part that is alike: before Triton 3.9 axes that are equally contiguous came in another order."""
    return layout if is_installed(NEWEST) else (type(layout), layout.size_per_thread)


@pytest.mark.backend
def test_our_coalescing_is_that_of_stock_on_the_oracles_kernels(tmp_path):
    compared, different = 0, set()
    for path in loading.files():
        for name, case in list(loading.load(path, ours=False).items())[:: 1 if is_full() else 4]:
            module = ours.launchable(case)
            infos = {value: info for function in module.ops for value, info in axis_infos(function).items()}
            found = [coalesced_layout(op.ptr, infos[op.ptr], 4) for op in accesses(module)]
            if any(isinstance(op, tt.CallOp) for op in module.walk()) or not found:
                continue
            try:
                run_pipeline(module, ttgir_pipeline(), make_context())
                stock = layouts_of_stock(module, tmp_path)
            except (CompilationError, BackendError, RuntimeError):
                # What this version of Triton can't read has nothing to compare with.
                continue
            compared += len(found)
            assert len(found) == len(stock)
            if list(map(_compared, found)) != list(map(_compared, stock)):
                different.add(name)
    assert compared > (600 if is_full() else 100)
    assert different <= OTHERWISE


BODIES = {
    "row major": "tl.store(y + rows * stride + columns, tl.load(x + rows * stride + columns))",
    "column major": "tl.store(y + columns * stride + rows, tl.load(x + columns * stride + rows))",
    "transposed": "tl.store(y + columns * stride + rows, tl.load(x + rows * stride + columns))",
    "masked": "inside = (rows < n) & (columns < n)\n"
    "    tl.store(y + rows * stride + columns, tl.load(x + rows * stride + columns, inside, 0.0), inside)",
    "odd mask": "tl.store(y + rows * stride + columns, tl.load(x + rows * stride + columns), columns < odd)",
    "unaligned": "tl.store(y + rows * stride + columns, tl.load(x + rows * odd + columns))",
    "one row": "tl.store(y + tl.arange(0, 64), tl.load(x + tl.arange(0, 64)))",
    "column sums": "tl.atomic_add(y + columns + rows * 0, tl.load(x + rows * stride + columns))",
}
KERNEL = """
@tlx_xdsl.jit
def kernel(x, y, out, stride, n, odd, DOT: tl.constexpr, COPY: tl.constexpr):
    if DOT:
        a = tlx.local_alloc((64, 64), tl.float16, 2)
        acc = tlx.async_dot_wait(0, tlx.async_dot(a[0], a[1]))
        tl.store(out, tl.sum(acc))
    if COPY:
        rows = tl.arange(0, 64)[:, None]
        columns = tl.arange(0, 128)[None, :]
        BODY
"""
ACCESS = re.compile(r"\b(?:ld|st)\.global[\w.:]*|\b(?:atom|red)\.global[\w.:]*")


@pytest.mark.backend
@pytest.mark.parametrize("dtype", ["fp16", "fp32"] if is_full() else ["fp16"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_accesses_beside_a_dot_are_as_wide_as_in_a_plain_kernel(tmp_path, body, dtype):
    kernel = load(tmp_path, KERNEL.replace("BODY", body.replace("\n", "\n    "))).kernel
    signature = {"x": f"*{dtype}:16", "y": f"*{dtype}:16", "out": "*fp32"}
    signature |= {"stride": "i32:16", "n": "i32:16", "odd": "i32"}

    def counted(**constexprs):
        ptx = compile_kernel(kernel, Specialization(signature, constexprs)).ptx
        return Counter(ACCESS.findall(ptx))

    own = counted(DOT=True, COPY=True) - counted(DOT=True, COPY=False)
    assert own == counted(DOT=False, COPY=True)
    assert own
