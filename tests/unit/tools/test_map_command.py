"""`tlx map` on the examples and on wrong input.

`hopper_gemm_map.json` has the maps that `tlx map examples/hopper_gemm_ws.py:matmul --format json` writes, with the
directory of the example left out, and the picture in the docs is that of the attention kernel; TLX_UPDATE_GOLDEN=1
writes them anew.
"""

import ast
import json
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tlx_xdsl.tools.opt.main import main as tlx_opt
from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
GEMM = f"{EXAMPLES / 'hopper_gemm_ws.py'}:matmul"
ATTENTION = f"{EXAMPLES / 'blackwell_attention_ws.py'}:attention"
GOLDEN = Path(__file__).parent / "hopper_gemm_map.json"

DOCS = ROOT / "docs"
PICTURE = DOCS / "images" / "blackwell_attention_map.svg"
ON_A_PHONE = DOCS / "images" / "blackwell_attention_map_phone.svg"

SVG = "{http://www.w3.org/2000/svg}"


def mapped(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["map", *arguments]) == 0
    return capsys.readouterr().out


def test_json_of_the_hopper_gemm(capsys: pytest.CaptureFixture[str]):
    maps = json.loads(mapped(capsys, GEMM, "--format", "json").replace(f"{EXAMPLES}{os.sep}", ""))["maps"]
    if os.environ.get("TLX_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(maps, indent=2) + "\n")
    assert maps == json.loads(GOLDEN.read_text())


def test_the_golden_file_says_what_the_kernel_s_arithmetic_says():
    """The ring of 3 stages is 3 * (2 * 64*64 + 64*256) * 2 bytes, and C lies on its first stages of B."""
    (kernel,) = json.loads(GOLDEN.read_text())
    storage = kernel["memories"]["smem"]["regions"][0]
    assert storage["size"] == 3 * (2 * 64 * 64 + 64 * 256) * 2 == 147_456
    buffers = {f"{array['name']}[{each['index']}]": each for array in storage["arrays"] for each in array["buffers"]}
    assert buffers["c[1]"]["shares_with"] == ["b[1]"]
    assert buffers["a[5]"]["shares_with"] == []
    assert (buffers["a[5]"]["start"], buffers["a[5]"]["end"]) == (139_264, 147_456)
    assert kernel["memories"]["tmem"]["limit"] == 0


def test_text_has_a_line_for_every_buffer(capsys: pytest.CaptureFixture[str]):
    lines = mapped(capsys, GEMM).splitlines()
    assert "shared memory: 147,528 of 232,448 B, 84,920 free" in lines
    assert ["32,768", "65,536", "32,768", "c[1]", "64x256xf16", "b[1]"] in [line.split() for line in lines]
    assert len([line for line in lines if re.search(r" [abc]\[\d\] ", line)]) == 6 + 3 + 2
    assert any(re.fullmatch(r" +c +partition0 +hopper_gemm_ws.py:\d+,\d+", line) for line in lines)


def test_tensor_memory_of_the_attention_kernel(capsys: pytest.CaptureFixture[str]):
    (kernel,) = json.loads(mapped(capsys, ATTENTION, "--format", "json"))["maps"]
    tmem = kernel["memories"]["tmem"]
    assert (tmem["used"], tmem["limit"], tmem["unit"]) == (512, 512, "columns")
    scores = tmem["regions"][1]
    places = {array["name"]: [(each["start"], each["end"]) for each in array["buffers"]] for array in scores["arrays"]}
    assert places == {
        "s": [(0, 128), (128, 256)],
        "p": [(0, 32), (32, 64), (128, 160), (160, 192)],
        "alpha": [(64, 65), (192, 193)],
        "end_m": [(65, 66), (193, 194)],
        "end_total": [(66, 67), (194, 195)],
    }
    assert scores["padding"] == []


def test_svg_shows_every_buffer(tmp_path: Path):
    path = tmp_path / "map.svg"
    assert main(["map", ATTENTION, "-o", str(path)]) == 0
    picture = ET.parse(path).getroot()
    hints = [title.text or "" for title in picture.iter(f"{SVG}title")]
    assert "p[3]: 160 to 192 of scores_memory, 32 columns" in hints
    # Arrays q, k, v and o, s, alpha, m, the denominator of 2 buffers each, p of 4, and 11 arrays of barriers.
    assert len([hint for hint in hints if ": lines " not in hint]) == 8 * 2 + 4 + 11
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"p[3]", "s[1]", "limit 512", "limit 232,448", "partition3", "unused"} <= set(texts)
    width = float(picture.attrib["width"])
    for box in picture.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) + float(box.attrib["width"]) <= width


def test_lives_are_what_the_kernel_s_text_says():
    """The uses of a buffer are lines that name it, and its loop is the `for` around them in the task's block."""
    (kernel,) = json.loads(GOLDEN.read_text())
    source = (EXAMPLES / "hopper_gemm_ws.py").read_text().splitlines()
    loops = [node for node in ast.walk(ast.parse("\n".join(source))) if isinstance(node, ast.For)]
    lines = {task: [int(place.split(":")[1]) for place in places] for task, places in kernel["moments"].items()}
    arrays = {array["name"]: array["alive"] for array in kernel["memories"]["smem"]["regions"][0]["arrays"]}
    assert list(arrays) == ["a", "b", "c"]
    for name, alive in arrays.items():
        assert [life["task"] for life in alive] == [use for use in lines if use != "default" or name != "c"]
        for life in alive:
            used = [lines[life["task"]][moment] for moment in life["uses"]]
            assert all(f"{name}[" in source[line - 1] for line in used)
            assert (lines[life["task"]][life["from"]], lines[life["task"]][life["to"]]) == (used[0], used[-1])
            around = [each for each in loops if each.lineno <= used[0] <= used[-1] <= (each.end_lineno or 0)]
            inside = [
                line for line in lines[life["task"]] if around and around[0].lineno <= line <= around[0].end_lineno
            ]
            found = life["loop"] and [lines[life["task"]][moment] for moment in life["loop"]]
            assert found == ([inside[0], inside[-1]] if inside else None)
    # C lies where B did, and no task has both at one time.
    spans = {
        (name, life["task"]): (life["loop"] or [life["from"], life["to"]])
        for name in ("b", "c")
        for life in arrays[name]
    }
    for task in ("partition0", "partition1"):
        assert spans["b", task][1] < spans["c", task][0]


def test_the_time_axis_as_text_and_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    lines = mapped(capsys, GEMM).splitlines()
    start = lines.index("alive in default, by line of hopper_gemm_ws.py")
    assert lines[start + 1 : start + 4] == ["       61 62 63", "    a  ##====##", "    b  ~~~##~~~"]
    assert main(["map", GEMM, "-o", str(tmp_path / "map.svg")]) == 0
    picture = (tmp_path / "map.svg").read_text()
    assert picture.count("<title>c: lines 82 to 84</title>") == 4
    assert 'opacity="0.35"><title>b: lines 61 to 63</title>' in picture


def test_the_docs_show_what_is_drawn_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for picture, options in ((PICTURE, []), (ON_A_PHONE, ["--width", "400"])):
        path = picture if os.environ.get("TLX_UPDATE_GOLDEN") else tmp_path / "map.svg"
        assert main(["map", ATTENTION, "-o", str(path), *options]) == 0
        assert path.read_text() == picture.read_text()
    text = mapped(capsys, ATTENTION)
    page = (DOCS / "storage-aliasing.md").read_text()
    (shown,) = re.findall(r"```text\n( +scores_memory.*?)```", page, re.DOTALL)
    assert shown in text


def test_a_picture_for_a_phone_holds_what_the_wide_one_holds():
    """Read both pictures: the same titles and boxes, nothing beyond the right end, and no text above another."""
    wide, narrow = (ET.fromstring(each.read_text()) for each in (PICTURE, ON_A_PHONE))
    assert narrow.get("width") == "400"
    assert [each.text for each in narrow.iter(f"{SVG}title")] == [each.text for each in wide.iter(f"{SVG}title")]
    ends = [float(each.get("x")) + float(each.get("width")) for each in narrow.iter(f"{SVG}rect") if each.get("x")]
    assert max(ends) <= 400 - 12 + 1
    written = [(float(each.get("x")), float(each.get("y")), each.text) for each in narrow.iter(f"{SVG}text")]
    starts = [each for each in written if each[0] == 12]
    assert len({y for _, y, _ in starts}) == len(starts)
    assert all(x + 6.2 * len(text) <= 400 for x, _, text in starts if not text.startswith("alive in "))


def test_the_docs_advice_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    half = [f"--signature={name}_desc=tensordesc<fp16[128, 64]>" for name in "qkvo"]
    reported = ""
    for kernel, arguments in ((ATTENTION, ["--constexpr", "HEAD_DIM=64", *half]), (GEMM, [])):
        assert main(["compile", kernel, "--emit", "ttir", "-o", "-", *arguments]) == 0
        path = tmp_path / "kernel.ttir"
        path.write_text(capsys.readouterr().out)
        assert tlx_opt([str(path), "-p", "tlx-storage-advice"]) == 0
        reported += capsys.readouterr().err
    page = (DOCS / "storage-aliasing.md").read_text()
    shown = re.findall(r"^in '.*", page, re.MULTILINE)
    assert len(shown) == 5
    for line in shown:
        assert f"remark: {line}\n" in reported


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_ir_of_any_stage_is_mapped(tmp_path: Path, capsys: pytest.CaptureFixture[str], stage: str):
    # For Triton 3.8 the region is larger, since its views must fill it.
    assert main(["compile", GEMM, "--emit", stage, "-o", str(tmp_path), "-q", "--triton-version", "3.9"]) == 0
    text = mapped(capsys, str(tmp_path / f"matmul.{stage}"))
    assert "147,528 of 232,448 B" in text
    # After lowering, what says where a buffer lies is the code that indexes its view.
    assert ("c[1]" in text) == (stage == "ttir")


def test_over_budget_names_the_contributors(capsys: pytest.CaptureFixture[str]):
    assert main(["map", GEMM, "--constexpr", "NUM_STAGES=5"]) == 1
    printed = capsys.readouterr()
    assert "245,864 of 232,448 B, 13,416 too many" in printed.out
    assert main(["compile", GEMM, "--emit", "ttgir", "-o", "-", "--constexpr", "NUM_STAGES=5"]) == 1
    assert capsys.readouterr().err == printed.err
    assert re.search(r"py:\d+:\d+: error: 'matmul' needs 245,848 B of shared memory, sm_90a has 232,448\n", printed.err)
    assert "note: 245,760 B: storage for a, b, c at" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.py:kernel"], "nothing.py: error: no such file"),
        (["nothing.mlir"], "nothing.mlir: error: no such file"),
        (
            [GEMM, "--target", "sm_x"],
            "error: unknown target 'sm_x': the targets are sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, "
            "sm_107a, sm_110a, sm_120a, sm_121a",
        ),
    ],
)
def test_wrong_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str):
    assert main(["map", *arguments]) == 1
    assert capsys.readouterr().err.strip() == message


def test_a_picture_of_padding_and_of_code_outside_of_tasks(tmp_path: Path):
    path = tmp_path / "padded.mlir"
    a, b, spec = (
        "!ttg.memdesc<2x256xi8, #line, #ttg.shared_memory, mutable>",
        "!ttg.memdesc<2x64xi8, #line, #ttg.shared_memory, mutable>",
        "!tlx.storage_alias_spec<smem>",
    )
    path.write_text(
        "#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
        f"tt.func @f() {{ %s = tlx.storage_alias_spec storage = smem : {spec}\n"
        f"%a = tlx.storage_alias_local_alloc %s : {spec} -> {a}\n"
        f"%b = tlx.storage_alias_local_alloc %s : {spec} -> {b}\n"
        f"%g = tlx.reuse_group(%a, %b) group_kind = distinct : ({a}, {b}) -> !tlx.reuse_group<distinct>\n"
        f"tlx.set_buffer_overlap(%s, %g) : ({spec}, !tlx.reuse_group<distinct>) -> ()\n"
        f"ttg.local_dealloc %a : {a}\n"
        f"ttg.warp_specialize(%b) default {{ ttg.warp_yield }} partition0(%c: {b}) num_warps(4) "
        f"{{ ttg.local_dealloc %c : {b} ttg.warp_return }} : ({b}) -> () tt.return }}"
    )
    assert main(["map", str(path), "-o", str(tmp_path / "map.svg")]) == 0
    picture = ET.parse(tmp_path / "map.svg").getroot()
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"kernel", "partition0"} <= set(texts)
    # Groups of 512 bytes with 320 in use; nothing lies after the last one. The other box is the legend's.
    hatched = [box for box in picture.iter(f"{SVG}rect") if box.get("fill") == "url(#unused)"]
    assert len(hatched) == 1 + 1
    assert len([line for line in picture.iter(f"{SVG}line") if "stroke-dasharray" in line.attrib]) == 1


def test_ir_without_buffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "empty.mlir"
    path.write_text("tt.func @f() { tt.return }")
    assert main(["map", str(path)]) == 1
    assert "nothing here allocates shared or tensor memory" in capsys.readouterr().err


def test_a_picture_shows_one_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "two.mlir"
    body = "%a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, #line, #ttg.shared_memory, mutable> tt.return"
    path.write_text(
        "#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
        f"tt.func @f() {{ {body} }} tt.func @g() {{ {body} }}"
    )
    assert "\n\ng (two.mlir:2) for sm_90a" in mapped(capsys, str(path))
    assert main(["map", str(path), "--format", "svg"]) == 1
    assert "a picture shows one function, this module has f, g" in capsys.readouterr().err
