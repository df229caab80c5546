"""`tlx.dump_layout` and `tlx.assert_same_layout` in kernels, through the whole compiler."""

# covers: tlx-dump-layout

import re
from pathlib import Path

import pytest

from tlx_xdsl.tools.tlx import main

KERNEL = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def through(p, SIZE: tl.constexpr):
    rows, columns = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x = tl.load(p + rows * SIZE + columns)
    tile = tlx.local_alloc((SIZE, SIZE), tl.float16, 1)
    tlx.local_store(tile[0], x)
    tlx.dump_layout(tile[0])
    y = tlx.local_load(tlx.local_trans(tile[0]))
    tlx.assert_same_layout(tile[0], {buffer})
    tlx.assert_same_layout(x, {registers})
    tl.store(p + rows * SIZE + columns, y)


TLX_COMPILE = {{"through": {{"signature": {{"p": "*fp16:16"}}, "constexprs": {{"SIZE": 64}}}}}}
"""
NVMMA = "tlx.nv_mma_shared_layout_encoding.make_default((64, 64), tl.float16)"
SWIZZLED = "tlx.swizzled_layout(3, 3, 3)"
FLAT = "tlx.swizzled_shared_layout_encoding.make_default(2)"


def compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str], buffer: str, registers: str) -> tuple[int, str, str]:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.format(buffer=buffer, registers=registers))
    status = main(["compile", f"{path}:through", "--emit", "ttgir", "-o", "-"])
    printed = capsys.readouterr()
    return status, printed.out, printed.err.replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("buffer", [NVMMA, SWIZZLED])
def test_a_dump_reports_what_accesses_cost(buffer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    status, text, printed = compiled(tmp_path, capsys, buffer, "y")
    assert status == 0
    # Nothing of ours is left but what the module says of itself.
    assert "tlx." not in re.sub(r"tlx\.(has|enable)_\w+|tlx_", "", text)
    assert "tlx.dump_layout" not in text
    assert "tlx.assert_same_layout" not in text
    lines = printed.splitlines()
    assert lines[0] == "// tlx.dump_layout @ kernel.py:12:5"
    assert lines[1].startswith("//   !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128")
    assert lines[2] == "//   cute: Swizzle<3,3,3> o (_64,_64):(_64,_1)"
    assert lines[3:] == [
        "//   line 11: threads write: 16 bits per lane, no bank conflicts (32 wavefronts per warp)",
        "//   line 13: threads read: 16 bits per lane, 4-way bank conflicts (128 instead of 32 wavefronts per warp)",
        "//   stock Triton may still choose other layouts for registers",
    ]


def test_an_assertion_about_a_buffer_fails_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    status, _, printed = compiled(tmp_path, capsys, FLAT, "y")
    assert status == 1
    lines = printed.splitlines()
    assert lines[0] == "kernel.py:14:5: error: layout assertion failed: LinearLayouts differ"
    here, expected = (line.partition(": note: ")[2] or line for line in lines[-2:])
    assert here.endswith("which is cute: Swizzle<3,3,3> o (_64,_64):(_64,_1)")
    assert expected.endswith("which is cute: (_64,_64):(_64,_1)")


DEFAULT, OTHER = "((32,4),32):((1,32),128)", "((32,4),(2,16)):((2,64),(1,256))"


def test_an_assertion_about_registers(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert compiled(tmp_path, capsys, NVMMA, f'tlx.layout("{DEFAULT}")')[0] == 0
    status, _, printed = compiled(tmp_path, capsys, NVMMA, f'tlx.layout("{OTHER}")')
    assert status == 1
    lines = printed.splitlines()
    assert lines[0] == "kernel.py:15:5: error: layout assertion failed: LinearLayouts differ"
    assert lines[-2].endswith("which is cute: ((_32,_4),_32):((_1,_32),_128)")
    assert lines[-1].endswith("which is cute: ((_32,_4),(_2,_16)):((_2,_64),(_1,_256))")
