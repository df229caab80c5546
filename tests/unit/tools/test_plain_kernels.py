"""Plain Triton kernels, without TLX: stock Triton's own passes lower them, software pipelining included."""

import json
import re

import pytest

from tlx_xdsl.tools.tlx import main

SOURCE = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    if n <= 0:
        return
    row = tl.load(x + index, mask=index < n, other=float("-inf"))
    row = tl.exp(-(tl.max(row, 0) - row))
    tl.store(out + index, row / tl.sum(row, 0), mask=index < n)


@tlx_xdsl.jit
def product(a, b, c, K, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    rows, columns = tl.arange(0, SIZE), tl.arange(0, DEPTH)
    left = a + rows[:, None] * K + columns[None, :]
    right = b + columns[:, None] * SIZE + rows[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, K, DEPTH):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += DEPTH
        right += DEPTH * SIZE
    tl.store(c + rows[:, None] * SIZE + rows[None, :], total)


@tlx_xdsl.jit
def staged(x, out):
    buffer = tlx.local_alloc((64,), tl.float32, 1)
    index = tl.arange(0, 64)
    tlx.local_store(buffer[0], tl.load(x + index))
    tl.store(out + index, tlx.local_load(buffer[0]))


TLX_COMPILE = {
    "staged": {"signature": {"x": "*fp32:16", "out": "*fp32:16"}, "constexprs": {}},
    "softmax": {"signature": {"x": "*fp32:16", "out": "*fp32:16", "n": "i32"}, "constexprs": {"BLOCK": 1024}},
    "product": {
        "signature": {"a": "*fp16:16", "b": "*fp16:16", "c": "*fp32:16", "K": "i32:16"},
        "constexprs": {"SIZE": 128, "DEPTH": 64},
    },
}
"""


@pytest.fixture
def compile_plain(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(SOURCE)

    def run(kernel: str, *arguments: str) -> None:
        assert main(["compile", f"{path}:{kernel}", "-o", str(tmp_path), "-q", *arguments]) == 0

    return run


def test_stock_triton_gets_ttir(tmp_path, compile_plain):
    compile_plain("product", "--emit", "ttir,ttgir")
    assert (tmp_path / "product.ttgir").read_text().count("tt.dot") == 1
    # A target, in TTIR, makes stock Triton's passes divide approximately.
    assert "ttg." not in (tmp_path / "product.ttgir").read_text()


@pytest.mark.backend
@pytest.mark.parametrize(("stages", "shared"), [(2, 65536), (4, 131072)])
def test_their_loops_are_pipelined_as_deep_as_asked(tmp_path, compile_plain, stages, shared):
    compile_plain("product", "--emit", "ptx,json", "--num-stages", str(stages))
    # One stage holds a tile of each operand: 2 x 128 x 64 x 2 bytes.
    assert json.loads((tmp_path / "product.json").read_text())["shared"] == shared
    assert "wgmma.mma_async" in (tmp_path / "product.ptx").read_text()


@pytest.mark.backend
def test_reductions_and_early_returns_compile(tmp_path, compile_plain):
    compile_plain("softmax")
    assert (tmp_path / "softmax.cubin").stat().st_size > 1000


def test_our_own_conversion_can_be_forced(tmp_path, compile_plain):
    compile_plain("product", "--emit", "ttgir", "--conversion", "own")
    text = (tmp_path / "product.ttgir").read_text()
    assert "#blocked" in text
    assert '"ttg.num-warps" = 4' in text


def test_the_conversion_of_stock_triton_takes_plain_triton_only(tmp_path, capsys):
    path = tmp_path / "plain.py"
    path.write_text(SOURCE)
    arguments = ["compile", f"{path}:staged", "-o", str(tmp_path), "-q", "--emit", "ttgir"]
    assert main([*arguments, "--conversion", "auto"]) == 0
    assert main([*arguments, "--conversion", "stock"]) == 1
    printed = capsys.readouterr().err
    line = SOURCE.splitlines().index("    buffer = tlx.local_alloc((64,), tl.float32, 1)") + 1
    assert f"plain.py:{line}:" in printed
    assert "error: stock Triton's conversion was asked for, which does not know 'ttg.local_alloc'" in printed


@pytest.mark.backend
def test_a_matrix_product_of_our_conversion_runs_on_tensor_cores(tmp_path, compile_plain):
    compile_plain("product", "--emit", "ptx,cubin", "--conversion", "own")
    assert re.search(r"wgmma\.mma_async|mma\.sync", (tmp_path / "product.ptx").read_text())
