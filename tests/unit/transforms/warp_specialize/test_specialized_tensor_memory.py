"""Products of consumers by tcgen05: equal to the plain kernel, proved, and the same as their source."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.numpy_arrays import NumpyArrays
from tests.unit import volume
from tests.unit.decompile.equal_ttgir import difference_from_source, source_of, table_of
from tests.unit.decompile.reversing import compiled, imported, kernel_of
from tlx_xdsl import CompilationError, TensorDescriptor
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.simulate.interpret import interpret
from tlx_xdsl.runtime.specialize.rules import by_rule
from tlx_xdsl.runtime.specialize.specialized import warp_specialized
from tlx_xdsl.runtime.specialize.verdict import proof_of
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions, specialize

BLACKWELL = "sm_100a"
PASSES = [f"after:frontend={name}" for name in ("tlx-ws-form-tasks", "tlx-ws-tensor-memory", "tlx-ws-issue-products")]


def sums(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    """A sum in each turn of a loop over tiles, from an inner loop that may have no turn."""
    tiles = tl.cdiv(N, BLOCK)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles, tl.num_programs(0)):
        m = tile // tiles * BLOCK
        n = tile % tiles * BLOCK
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(m % 128, K, 32):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
        c_desc.store([m, n], acc.to(tl.float16))


def two_loops(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    """Two loops go on with one sum, which each turn scales before it adds to it."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    middle = m % K
    acc = tl.full((BLOCK, BLOCK), 1.0, tl.float32)
    for k in range(0, middle, 32):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc * 0.5)
    for k in range(middle, K, 32):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc * 0.75)
    c_desc.store([m, n], acc.to(tl.float16))


def branches(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    """A product that only some turns do, of a block that threads change, in a loop that carries its sum."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        a = a_desc.load([m, k])
        b = b_desc.load([k, n])
        if k % 64 == 32:
            acc = tl.dot(a * 2, b, acc)
        else:
            acc += tl.sum(a.to(tl.float32), 1)[:, None]
    c_desc.store([m, n], acc.to(tl.float16))


def scaled(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    """Products that threads scale before they add them; the sum is stored in each turn."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    rows = m + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        s = tl.load(s_ptr + rows * tl.cdiv(K, 32) + k // 32, mask=rows < M, other=0.0)
        acc += tl.dot(a_desc.load([m, k]), b_desc.load([k, n])) * s[:, None]
        c_desc.store([m, n], acc.to(tl.float16))


def chained(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    """Two products for a sum in a turn; the product before the second one is needed by itself."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    most = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, K, 64):
        first = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
        acc = tl.dot(a_desc.load([m, k + 32]), b_desc.load([k + 32, n]), first)
        most = tl.maximum(most, tl.max(first, 1))
    c_desc.store([m, n], (acc + most[:, None]).to(tl.float16))


KERNELS = [sums, two_loops, branches, scaled, chained]
DESCRIBED = TensorDescriptor.from_tensor


def problem(fn, passes=PASSES):
    """The kernel, its grid, its arguments, and its result."""
    m, n, k = 200, 104, 128
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k)).astype(np.float16), random.standard_normal((k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    scales = random.standard_normal((m, k // 32)).astype(np.float32)
    grid = (3,) if fn is sums else (4, 2)
    args = DESCRIBED(a, [64, 32]), DESCRIBED(b, [32, 64]), DESCRIBED(c, [64, 64]), scales, m, n, k
    return tlx_xdsl.jit(fn, passes=passes), grid, args, c


@pytest.mark.parametrize("fn", KERNELS)
def test_products_in_tensor_memory_compute_what_the_plain_kernel_does(fn):
    plain, grid, args, expected = problem(fn, ())
    plain.interpret(grid, *args, BLOCK=64, target=BLACKWELL)
    assert not np.isnan(expected).any()
    kernel, grid, args, found = problem(fn)
    kernel.interpret(grid, *args, BLOCK=64, target=BLACKWELL, stage="ttgir")
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("fn", KERNELS)
def test_products_in_tensor_memory_are_proved(fn):
    kernel, grid, args, _ = problem(fn)
    report = kernel.check(grid, *args, BLOCK=64, prove=True, target=BLACKWELL, stages=("frontend", "ttgir"))
    assert not report.findings
    assert [proof.answer for proof in report.proofs] == ["proved"]


def in_while(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        acc += tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]))
    left = M
    while left > 0:
        acc = tl.dot(acc.to(tl.float16), acc.to(tl.float16), acc)
        left -= 32
    c_desc.store([0, 0], acc.to(tl.float16))


def test_a_product_in_a_while_is_refused_at_its_line():
    kernel, _, args, _ = problem(in_while)
    with pytest.raises(CompilationError, match="stay in tensor memory across a 'while' loop") as raised:
        kernel.compile(*args, BLOCK=64, target=BLACKWELL)
    assert raised.value.source_line.strip().startswith("acc = tl.dot(acc")


# The gallery ----------------------------------------------------------------------------------------------------------


def made(name, shape, decisions, **config):
    """The specialised kernel of a family, and a launch."""
    family = FAMILIES[name]
    constants = {**family.constexprs(shape, config), **{k: 1 for k in table_of(family).constexprs if k.islower()}}
    launch = family.problem(shape, NumpyArrays(), config)
    signature = {k: v for k, v in table_of(family).signature.items() if k not in constants}
    for each, value in launch.arguments.items():
        if isinstance(value, TensorDescriptor):
            signature[each] = f"tensordesc<fp16{list(value.block_shape)}>"
    warps = family.config["num_warps"]
    found = warp_specialized(family.kernel, signature, constants, Decisions(**decisions), BLACKWELL, warps)
    assert found.refused is None, str(found.refused)
    return found, launch, constants


def check_results(name, shape, decisions, stage="frontend", **config):
    """Run the specialised kernel, and compare with the reference."""
    found, launch, constants = made(name, shape, decisions, **config)
    fitted = found.fitted(launch.grid, {**launch.arguments, **constants}, 2)
    assert not isinstance(fitted, str), fitted
    grid, values = fitted
    interpret(found.kernel, grid, *values, options={"stage": stage, "target": BLACKWELL, **found.options})
    inputs = {k: np.asarray(v, np.float64) for k, v in launch.arrays.items() if k not in launch.outputs}
    for output, expected in launch.reference(np, inputs).items():
        error = np.linalg.norm(launch.arrays[output] - expected) / np.linalg.norm(expected)
        assert error < FAMILIES[name].tolerance
    return found


CASES = {
    "two groups": ("attention", {"batch": 1, "heads": 1, "length": 300, "dim": 64, "causal": True},
                   {"groups": 2}, {"BLOCK_M": 256, "BLOCK_N": 64}),
    "persistent": ("attention", {"batch": 1, "heads": 3, "length": 129, "dim": 64, "causal": False},
                   {"persistent": True, "pipeline": False}, {"BLOCK_N": 64}),
    "overlapped": ("matmul_persistent", {"M": 513, "N": 520, "K": 136, "programs": 2}, {}, {}),
    "gated": ("gated", {"M": 130, "N": 264, "K": 72}, {"persistent": True}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES if volume.is_full() else ["two groups", "overlapped"])
def test_kernels_of_the_gallery_are_right(case):
    name, shape, decisions, config = CASES[case]
    check_results(name, shape, decisions, **config)


@pytest.mark.backend
@pytest.mark.parametrize("case", CASES if volume.is_full() else [])
def test_kernels_of_the_gallery_are_right_in_ptx(case):
    name, shape, decisions, config = CASES[case]
    check_results(name, shape, decisions, stage="ptx", **config)


def test_attention_of_two_groups_is_proved():
    name, shape, decisions, config = CASES["two groups"]
    found, _, _ = made(name, shape, {**decisions, "split_masks": False}, **config)
    assert proof_of(found.kernel, found.specialization).answer in ("proved", "proved on conditions")


@pytest.mark.parametrize("name", sorted(FAMILIES) if volume.is_full() else ["matmul_persistent", "attention"])
def test_the_source_for_blackwell_compiles_to_the_same_module(name, tmp_path):
    family = FAMILIES[name]
    table = table_of(family)
    options = {**table.options, "target": BLACKWELL}
    module = frontend_module(family.kernel.source, Specialization(table.signature, table.constexprs, **options))
    specialize(module, make_context(), by_rule(Decisions(), module), replicate=False)
    if name == "matmul_persistent":
        (tasks,) = ops_of(module, WarpSpecializeOp)
        assert tasks.num_warps == (8, 1)
    path = tmp_path / f"{name}.py"
    again = compiled(*kernel_of(imported(source_of(family, module), path), path))
    assert difference_from_source(module, again) is None
