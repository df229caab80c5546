"""Plain Triton kernels on targets that lack something: stock Triton helps itself, or we refuse at the line."""

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.build import build
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text

pytestmark = pytest.mark.backend


@tlx_xdsl.jit
def through_a_descriptor(x, out, n):
    tile = tl.make_tensor_descriptor(x, [n, 64], [64, 1], [64, 64]).load([0, 0])
    i = tl.arange(0, 64)
    tl.store(out + i[:, None] * 64 + i[None, :], tile)


@tlx_xdsl.jit
def through_an_argument(tiles, out):
    i = tl.arange(0, 64)
    tl.store(out + i[:, None] * 64 + i[None, :], tiles.load([0, 0]))


@tlx_xdsl.jit
def gathered(x, out, n):
    rows = tl.make_tensor_descriptor(x, [n, 64], [64, 1], [1, 64])
    i = tl.arange(0, 64)
    tl.store(out + i[:, None] * 64 + i[None, :], rows.gather(i, 0))


@tlx_xdsl.jit
def scattered(x, out, n):
    rows = tl.make_tensor_descriptor(x, [n, 64], [64, 1], [1, 64])
    i = tl.arange(0, 64)
    rows.scatter(tl.load(out + i[:, None] * 64 + i[None, :]), i, 0)


@tlx_xdsl.jit
def scaled(a, b, a_scale, b_scale, out, FORMAT: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, 2)
    tile, scales = i[:, None] * 64 + i[None, :], i[:, None] * 2 + k[None, :]
    product = tl.dot_scaled(
        tl.load(a + tile), tl.load(a_scale + scales), FORMAT, tl.load(b + tile), tl.load(b_scale + scales), FORMAT
    )
    tl.store(out + tile, product)


TILE = {"x": "*fp16:16", "out": "*fp16:16", "n": "i32"}


def scaled_arguments(element: str) -> dict[str, str]:
    return {"a": f"*{element}:16", "b": f"*{element}:16", "a_scale": "*u8", "b_scale": "*u8", "out": "*fp32"}


CASES = [
    (through_a_descriptor, TILE, {}, "sm_80", None),
    (gathered, TILE, {}, "sm_80", None),
    (gathered, TILE, {}, "sm_90a", "a gather through a tensor descriptor needs TMA gather (sm_100a or later)"),
    (gathered, TILE, {}, "sm_120a", None),
    (scattered, TILE, {}, "sm_80", None),
    (scattered, TILE, {}, "sm_120a", "a scatter through a tensor descriptor needs TMA scatter (sm_100a)"),
    (scaled, scaled_arguments("fp8e5"), {"FORMAT": "e5m2"}, "sm_80", None),
    (scaled, scaled_arguments("fp8e4nv"), {"FORMAT": "e4m3"}, "sm_89", None),
    (
        scaled,
        scaled_arguments("fp8e4nv"),
        {"FORMAT": "e4m3"},
        "sm_80",
        "tl.dot_scaled needs fp8e4nv conversions (sm_89 or later)",
    ),
]


@pytest.mark.parametrize(("kernel", "signature", "constexprs", "target", "refusal"), CASES)
def test_it_compiles_or_is_refused(kernel, signature, constexprs, target, refusal):
    wanted = Specialization(signature, constexprs, target=target)
    if refusal is not None:
        with pytest.raises(CompilationError) as error:
            compile_text(kernel.source, wanted)
        assert error.value.message == f"{refusal}; target is {target}"
        return
    text = compile_text(kernel.source, wanted, triton_version=INSTALLED)
    assert compile_ttgir(text.ttgir, BackendOptions(target=target)).cubin


def test_a_launcher_makes_no_descriptor_without_tma():
    """Stock Triton takes the parts of a descriptor there: shape, strides and all, as arguments of their own."""
    with pytest.raises(CompilationError) as error:
        build(through_an_argument, {"tiles": "tensordesc<fp16[64, 64]>", "out": "*fp16:16"}, {}, target="sm_80")
    said = "a tensor descriptor as the argument 'tiles' needs TMA (sm_90a or later); target is sm_80"
    assert error.value.message == said
    assert "note: make it in the kernel of a pointer: tl.make_tensor_descriptor" in str(error.value)
