"""Every kind of operation on tensors, in tasks of 1, 2, 4 and 8 warps and in loops and branches inside of them.

The layouts of a task are those of its own warps. Stock Triton takes each kernel to LLVM IR, which fails where a layout
is for other warps; and the interpreter gives the same numbers for the frontend's module and for our TTGIR.
"""

import numpy as np
import pytest

from tests.unit.frontend.kernels import load
from tests.unit.volume import is_full
from tests.versions import INSTALLED, OLDEST, RELEASE, release
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.transforms.tritongpu.conversion.converter import HANDLERS

MATRIX = "tl.store(out + r * 32 + c, value)"
VECTOR = "tl.store(out + tl.arange(0, 64), value)"
SCALAR = "tl.store(out, value)"

# `x` is a matrix of 64 x 32 floats, `i` one of small integers, and `r` and `c` are the indices of rows and columns.
BODIES = {
    "arithmetic": ("value = x * 2.0 + tl.where(x > 0, x, -x) - tl.minimum(x, 0.5) / 3.0", MATRIX),
    "integers": ("value = ((i * 7 + r) % 5 ^ (i << 2) & 255 | (i >> 1)).to(tl.float32)", MATRIX),
    "casts": (
        "value = x.to(tl.float16).to(tl.float32) + x.to(tl.int32).to(tl.float32) + (x > 0).to(tl.float32)",
        MATRIX,
    ),
    "bits": ("value = (x.to(tl.int32, bitcast=True) & 0x7FFFFFFF).to(tl.float32, bitcast=True)", MATRIX),
    "mathematics": ("value = tl.exp2(x) + tl.sqrt(tl.abs(x)) + tl.math.rsqrt(tl.abs(x) + 1.0) + tl.sin(x)", MATRIX),
    "rounding": ("value = tl.math.floor(x) + tl.math.ceil(x) + tl.clamp(x, -1.0, 1.0) + tl.fma(x, x, x)", MATRIX),
    "precise": ("value = tl.div_rn(x, 3.0) + tl.sqrt_rn(tl.abs(x))", MATRIX),
    "high half": ("value = tl.umulhi(i.to(tl.uint32), 1 << 30).to(tl.float32)", MATRIX),
    "assembly": (
        'value = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)',
        MATRIX,
    ),
    "shapes": ("value = tl.reshape(tl.permute(tl.reshape(x, (32, 64)), (1, 0)), (64, 32))", MATRIX),
    "join and split": ("a, b = tl.split(tl.join(x, x * 2.0))\nvalue = a - b", MATRIX),
    "cat": ("value = tl.cat(tl.arange(0, 32), tl.arange(32, 64), can_reorder=True).to(tl.float32) * 0", VECTOR),
    "transposition": ("value = tl.trans(tl.trans(x) + 1.0)", MATRIX),
    "interleave": ("value = tl.reshape(tl.interleave(x, x), (64, 2, 32))\nvalue = tl.sum(value, 1)", MATRIX),
    "sum of rows": ("value = tl.sum(x, 1)", VECTOR),
    "sum of columns": ("value = tl.max(x, 0)[None, :] + tl.zeros((64, 32), tl.float32)", MATRIX),
    "sum of all": ("value = tl.sum(x)", SCALAR),
    "where the maximum is": ("value = tl.argmax(x, 1).to(tl.float32)", VECTOR),
    "minimum with its place": ("a, b = tl.min(x, 1, return_indices=True)\nvalue = a + b", VECTOR),
    "scan": ("value = tl.cumsum(x, 1) + tl.cumsum(x, 0, reverse=True)", MATRIX),
    "product scan": ("value = tl.cumprod(i.to(tl.float32) * 0.1 + 0.5, 1)", MATRIX),
    "gather": ("value = tl.gather(x, i % 32, 1)", MATRIX),
    "histogram": ("value = tl.histogram(tl.reshape(i, (2048,)) % 64, 64).to(tl.float32)", VECTOR),
    "sort": ("value = tl.sort(x, 1)", MATRIX),
    "flip": ("value = tl.flip(x, 1)", MATRIX),
    "softmax": ("value = tl.softmax(x)", MATRIX),
    "atomic sum": ("value = tl.atomic_add(counters + i % 8 * 0 + r * 32 + c, x)", MATRIX),
    "atomic maximum": ("value = tl.atomic_max(numbers + r * 32 + c, i).to(tl.float32)", MATRIX),
    "atomic exchange": ("value = tl.atomic_cas(numbers + r * 32 + c, i, i + 1).to(tl.float32)", MATRIX),
    "masked": ("value = tl.load(source + r * 32 + c, mask=x > 0, other=7.0)", MATRIX),
    "product": ("value = tl.dot(x, tl.trans(x), input_precision='ieee')\nvalue = tl.sum(value, 1)", VECTOR),
    "loop": (
        "value = x\nfor n in range(3):\n    if n > 1:\n        value += tl.sum(value, 1)[:, None]\n"
        "    else:\n        value = tl.trans(tl.trans(value) * 0.5)",
        MATRIX,
    ),
    "while": (
        "value = x\nn = 0\nwhile n < 3:\n    value = value * 0.5 + tl.max(value, 0)[None, :]\n    n += 1",
        MATRIX,
    ),
    "shared memory": (
        "buffer = tlx.local_alloc((64, 32), tl.float32, 1)\ntlx.local_store(buffer[0], x)\n"
        "value = tl.trans(tlx.local_load(tlx.local_trans(buffer[0])))",
        MATRIX,
    ),
    "asynchronous copy": (
        "buffer = tlx.local_alloc((64, 32), tl.float32, 1)\n"
        "token = tlx.async_load(source + r * 32 + c, buffer[0])\n"
        "tlx.async_load_wait_group(0, [tlx.async_load_commit_group([token])])\n"
        "value = tlx.local_load(buffer[0])",
        MATRIX,
    ),
    "approximate": ("value = tl.fdiv(x, x + 9.0)", MATRIX),
    "library": ("value = libdevice.atan(x)", MATRIX),
    "narrow floats": ("value = x.to(tl.float8e5).to(tl.float32)", MATRIX),
    "pointers": (
        "places = (source + r * 32 + c).to(tl.int64, bitcast=True)\n"
        "value = tl.load(places.to(tl.pointer_type(tl.float32), bitcast=True))",
        MATRIX,
    ),
    "printing": ('tl.device_print("total", tl.sum(x))\nvalue = x', MATRIX),
    "each element": ("value = tl.map_elementwise(step, x)", MATRIX),
    "a call": ("value = scaled(x, tl.sum(x, 1))", MATRIX),
    "the element of a vector": ("a, b = tl.split(tl.arange(0, 2))\nvalue = x + a + b", MATRIX),
    "atomic accesses": (
        "tl.atomic_store(numbers + r * 32 + c, i * 2)\nvalue = tl.atomic_load(source + r * 32 + c)",
        MATRIX,
    ),
    "assertion": ('tl.device_assert(x == x, "a number")\nvalue = x', MATRIX),
}
NEEDS = {"atomic accesses": (3, 9)}
WARPS = (1, 2, 4, 8)

KERNEL = """
from tlx_xdsl.language.extra import libdevice


@tlx_xdsl.jit
def step(x):
    if x > 0:
        return x * 2.0
    else:
        return x - 1.0


@tlx_xdsl.jit(noinline=True)
def scaled(x, rows):
    return x * rows[:, None]


@tlx_xdsl.jit
def kernel(source, integers, counters, numbers, out, WARPS: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            total = tl.sum(scaled(tl.full((64, 32), 0.5, tl.float32), tl.full((64,), 2.0, tl.float32)))
            tl.store(counters + 64 * 32, total)  # beside what the other task adds to
        with tlx.async_task(num_warps=WARPS):
            r, c = tl.arange(0, 64)[:, None], tl.arange(0, 32)[None, :]
            x = tl.load(source + r * 32 + c)
            i = tl.load(integers + r * 32 + c)
            BODY
"""
SIGNATURE = {"source": "*fp32", "integers": "*i32", "counters": "*fp32", "numbers": "*i32", "out": "*fp32"}


def kernel_of(tmp_path, body):
    statements = "\n".join(body).replace("\n", "\n            ")
    return load(tmp_path, KERNEL.replace("BODY", statements)).kernel


# Everywhere each body is tried with one number of warps, at full volume with all.
CASES = [
    pytest.param(name, warps, id=f"{name}-{warps}")
    for position, name in enumerate(BODIES)
    for index, warps in enumerate(WARPS)
    if is_full() or position % len(WARPS) == index
]


@pytest.mark.parametrize(("name", "warps"), CASES)
def test_a_task_computes_the_same_with_layouts(tmp_path, name, warps):
    kernel = kernel_of(tmp_path, BODIES[name])

    def results(stage):
        rng = np.random.default_rng(3)
        source = rng.standard_normal((64, 32)).astype(np.float32)
        integers = rng.integers(0, 50, (64, 32)).astype(np.int32)
        arrays = [source, integers, np.zeros((65, 32), np.float32), integers.copy(), np.zeros((64, 32), np.float32)]
        kernel.interpret((1,), *arrays, WARPS=warps, stage=stage)
        return arrays

    for before, after in zip(results("frontend"), results("ttgir"), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


@pytest.mark.backend
@pytest.mark.parametrize(("name", "warps"), CASES)
def test_stock_triton_lowers_a_task(tmp_path, name, warps):
    kernel = kernel_of(tmp_path, BODIES[name])
    specialization = Specialization(SIGNATURE, {"WARPS": warps}, debug=True)
    if NEEDS.get(name, release(OLDEST)) > RELEASE:
        pytest.skip("this version of Triton does not have the operation")
    text = compile_text(kernel.source, specialization, triton_version=INSTALLED)
    result = compile_ttgir(text.ttgir, BackendOptions(), stages="llir")
    # Partitions come in whole warp groups.
    assert result.metadata.num_warps == 4 + max(4, warps)


def test_the_bodies_reach_the_conversion(tmp_path):
    """The bodies use every operation with a handler of its own, but for the operations of other files' tests."""
    from tlx_xdsl.runtime.driver.compilation import frontend_module

    used = set()
    for body in BODIES.values():
        module = frontend_module(kernel_of(tmp_path, body).source, Specialization(SIGNATURE, {"WARPS": 4}, debug=True))
        used |= {op.name for op in module.walk()}
    named = {cls.name for cls in HANDLERS if cls.name.startswith("tt.")}
    elsewhere = {name for name in named if name.startswith("tt.descriptor")} | {
        "tt.dot_scaled",
        "tt.atomic_poll",
        "tt.approx_divf",
    }
    assert named - used - elsewhere == set()
