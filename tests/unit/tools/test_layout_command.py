"""`tlx explain --layout`: the layout of a value as text and as a picture, with what its accesses and conversions do."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tlx_xdsl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)
from tlx_xdsl.layouts.pictures import holders
from tlx_xdsl.runtime.show.layout_svg import Access, Drawn, layouts_as_svg
from tlx_xdsl.tools.commands.layout_text import layouts_as_text
from tlx_xdsl.tools.launch_line.loading import load_kernel
from tlx_xdsl.tools.tlx import main

KERNEL = """
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def transpose(source, target, SIZE: tl.constexpr):
    here = tl.arange(0, SIZE)
    tile = tlx.local_alloc((SIZE, SIZE), tl.float32, 1, layout=LAYOUT)
    tlx.local_store(tile[0], tl.load(source + here[:, None] * SIZE + here[None, :]))
    turned = tlx.local_load(tlx.local_trans(tile[0]))
    tlx.dump_layout(tile[0])
    tl.store(target + here[:, None] * SIZE + here[None, :], turned)


TLX_COMPILE = {"transpose": {"signature": {"source": "*fp32:16", "target": "*fp32:16"}, "constexprs": {"SIZE": 32}}}
"""
PLAIN = "tlx.swizzled_shared_layout_encoding.make_default(2)"
EXAMPLES = Path(__file__).parents[3] / "examples"
WGMMA = NvidiaMmaLayout(3, 0, (4, 1), (), (16, 64, 16))
ROWS = BlockedLayout((1, 8), (8, 4), (4, 1), (1, 0))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    Path("turn.py").write_text(KERNEL.replace("LAYOUT", PLAIN))
    Path("swizzled.py").write_text(KERNEL.replace("LAYOUT", "tlx.swizzled_layout(5, 0, 5)"))
    return "turn.py:transpose"


def hints(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}title")]


def test_a_buffer_shows_its_banks_and_conflicts(kernel, capsys):
    assert main(["explain", kernel, "--layout", "tile"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "%tile, line 10: 1x32x32xf32, swizzled_shared, no swizzle, order [1, 0]"
    assert out[1] == "cute: (_1,_32,_32):(_1024,_32,_1)"
    assert out[4].split() == ["0", "@0:0", "@16:4", "@32:8", "@48:12", "@64:16", "@80:20", "@96:24", "@112:28"]
    read = out.index(
        "line 12: threads read: 32 bits per lane, 32-way bank conflicts (256 instead of 8 wavefronts per warp)"
    )
    assert out[read + 1] == f"  words of banks 0 to 31 in one pass: 32{' 0' * 31}"


def test_without_a_name_it_is_what_the_kernel_asks_for(kernel, capsys):
    for name, words in (("turn", 32), ("swizzled", 1)):
        assert main(["explain", f"{name}.py:transpose", "--svg", f"out/{name}.svg"]) == 0
        svg = Path(f"out/{name}.svg").read_text()
        assert hints(svg)[-32:][0] == f"bank 0: {words} word{'' if words == 1 else 's'}"
        assert "a part of %tile" in svg
    capsys.readouterr()


def test_a_conversion_is_a_flow(kernel, capsys):
    gemm = f"{EXAMPLES / 'hopper_gemm_ws.py'}:matmul"
    assert main(["explain", gemm, "--layout", "acc"]) == 0
    assert capsys.readouterr().out.startswith("%acc, line 68: 64x256xf32, accumulator of wgmma with N = 256")
    text = layouts_as_text([Drawn("%c", ROWS, (64, 64), 16, comes_from=WGMMA)])
    assert "elements from each warp (a row) to each warp (a column)" in text
    found = hints(layouts_as_svg([Drawn("%c", ROWS, (64, 64), 16, comes_from=WGMMA)]))
    assert [each for each in found if "elements" in each] == [
        f"w{i} to w{j}: 512 elements" for i in range(4) for j in range(4) if i % 2 == j // 2
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--layout", "nope"], "--layout: no value is called 'nope'; those with layouts are "),
        (["--layout", "source"], "--layout: 'source' has no layout, it is of type !tt.ptr<f32>"),
    ],
)
def test_what_has_no_layout_is_an_error(arguments, error, kernel, capsys):
    assert main(["explain", kernel, *arguments]) == 1
    assert error in capsys.readouterr().err


def test_a_kernel_that_asks_for_nothing(kernel, capsys):
    Path("turn.py").write_text(KERNEL.replace("LAYOUT", PLAIN).replace("    tlx.dump_layout(tile[0])\n", ""))
    assert main(["explain", kernel, "--svg", "x.svg"]) == 1
    assert capsys.readouterr().err == (
        "error: --svg: the kernel asks for no layout by tlx.dump_layout; name a value by --layout\n"
    )
    assert not Path("x.svg").exists()


DRAWN = [
    Drawn("%acc", WGMMA, (64, 64), 32),
    Drawn("%c", ROWS, (64, 64), 16, comes_from=BlockedLayout((1, 2), (8, 4), (4, 1), (1, 0))),
    Drawn("%d", ROWS, (64, 64), 16, comes_from=ROWS),
    Drawn("%v", BlockedLayout((4,), (32,), (4,), (0,)), (1024,), 32),
    Drawn("%s", BlockedLayout((1,), (32,), (4,), (0,), ((1,),)), (256,), 32),
    Drawn("%a", NvmmaSharedLayout(128, True, 16), (2, 64, 64), 16, [Access("TMA writes")]),
    Drawn("%p", PaddedSharedLayout((32,), (4,), (*((0, 1 << i) for i in range(5)), (1, 0)), ()), (2, 32), 32),
    Drawn("%b", SwizzledSharedLayout(1, 1, 1, (0,)), (4, 1), 64),
    Drawn("%t", TensorMemoryLayout(64, 64, 1), (64, 128), 32),
    Drawn("%x", TensorMemoryScalesLayout(), (128, 32), 8),
]


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn.title)
def test_pictures_are_well_formed_and_stay_in_their_frame(drawn):
    svg = layouts_as_svg([drawn, drawn])
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    tops = [float(re.search(r"[\d.]+\)", each.attrib["transform"])[0][:-1]) for each in root.iter(f"{SVG}g")]
    assert len(tops) == 2
    for group, top in zip(root.iter(f"{SVG}g"), tops, strict=True):
        for rect in group.iter(f"{SVG}rect"):
            x, y, wide, high = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= top + y + high <= height
        for text in group.iter(f"{SVG}text"):
            # A letter of 10 units is 7 wide at most, on average 5.6.
            long = 5.6 * len(text.text or "") * (1.25 if text.attrib.get("class") == "title" else 1)
            anchor = {"start": 0, "middle": long / 2, "end": long}[text.attrib.get("text-anchor", "start")]
            assert float(text.attrib["x"]) - anchor + long <= width
    assert layouts_as_text([drawn]).startswith(drawn.title)


def test_each_tile_says_who_holds_it():
    held = holders(WGMMA, (64, 64))
    found = [each for each in hints(layouts_as_svg([DRAWN[0]])) if "lane" in each]
    for hint in found:
        row, column, warp, lane, first, last = map(
            int,
            re.fullmatch(r"row (\d+), columns (\d+)-\d+: CTA 0, warp (\d+), lane (\d+), v(\d+)-(\d+)", hint).groups(),
        )
        assert (held.warps[row, column], held.lanes[row, column]) == (warp, lane)
        assert (held.registers[row, column], held.registers[row, column + 1]) == (first, last)
    assert len(found) == 16 * 8


def test_a_page_draws_what_is_asked_for(kernel):
    loaded, defaults = load_kernel(kernel)
    step = tlx_xdsl.first_step(loaded, defaults.signature, defaults.constexprs).to("tlx-lower-named-barriers")
    page = tlx_xdsl.show(step.module(), layouts=["turned"])
    titles = re.findall(r"<summary>layout of ([^<]*)</summary>", page.html)
    assert len(titles) == 2
    assert titles[0].startswith("%turned, line 12: 32x32xf32")
    assert "a part of %tile" in titles[1]
    with pytest.raises(CompilationError, match="layouts: no value is called 'nope'"):
        tlx_xdsl.show(step.module(), layouts=["nope"])
