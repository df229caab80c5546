"""`tlx addresses` on kernels and on wrong input.

The pictures in the docs are those of the commands in docs/program-coverage.md; TLX_UPDATE_GOLDEN=1 writes them anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.unit.volume import is_full
from tlx_xdsl.addresses.coverage.coverage import Coverage
from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "tests" / "unit" / "addresses" / "coverage" / "coverage_kernels.py"
SHOWN = KERNELS.relative_to(ROOT)
"""As diagnostics show it: tests run in the root."""
DOCS = ROOT / "docs"
PAGE = DOCS / "program-coverage.md"
SVG = "{http://www.w3.org/2000/svg}"

SECTION_7 = """\
tt.func @vector_add(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: !tt.ptr<f32>) {
    %c128 = arith.constant 128 : i32
    %pid = tt.get_program_id x : i32
    %block_start = arith.muli %pid, %c128 : i32
    %offsets = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %start = tt.splat %block_start : i32 -> tensor<128xi32>
    %indices = arith.addi %start, %offsets : tensor<128xi32>
    %ptr_a = tt.splat %arg0 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %ptrs_a = tt.addptr %ptr_a, %indices : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %a = tt.load %ptrs_a : tensor<128x!tt.ptr<f32>>
    tt.return
}
"""


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Return what the command prints, and what it warns of."""
    assert main(["addresses", *arguments]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["addresses", *arguments]) == 1
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.err


def test_section_7_of_the_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "vector_add.mlir"
    path.write_text(SECTION_7)
    lines = output(capsys, str(path))[0].splitlines()
    for line in (
        "%pid:       PID_INFO(axis=0, stride=1, offset=0)",
        "%block_start: PID_INFO(axis=0, stride=128, offset=0)",
        "%indices:   PID_INFO(axis=0, stride=128, offset=[0,127], elem_range)",
        "%ptrs_a:    ADDR_INFO(base=%arg0, axis=0, stride=512, offset=[0,508], coalesced=true)",
        "%a (load):  PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)",
    ):
        assert line in lines
    assert ["10", "load", "arg0", "PID_AFFINE", "x:", "512", "B", "128", "x", "4", "B"] in [
        line.split()[:11] for line in lines
    ]


def test_section_7_as_printed_adds_a_scalar_to_a_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "vector_add.mlir"
    path.write_text(re.sub(r"\n.*%start = .*", "", SECTION_7).replace("%start, %offsets", "%block_start, %offsets"))
    error = refused(capsys, str(path))
    assert error.startswith(f"{path}:6:")
    assert "tensor<128xi32>" in error


def test_without_a_grid_conditions_are_reported(capsys: pytest.CaptureFixture[str]):
    out, err = output(capsys, f"{KERNELS}:two_axes")
    assert "dst: no two programs write the same bytes, as long as num_programs_x <= 8 and" in out
    assert "x: 256 B, y: 2048 B" in out
    assert err == ""


def test_collisions_are_warned_of_with_both_lines(capsys: pytest.CaptureFixture[str]):
    out, err = output(capsys, f"{KERNELS}:two_lines", "--grid", "3")
    assert "dst: programs (0, 0, 0) and (2, 0, 0) write the same bytes" in out
    lines = err.splitlines()
    first, second = (
        number for number, line in enumerate(KERNELS.read_text().splitlines(), 1) if "tl.store(dst + " in line
        and ("pid * BLOCK + lanes" in line or "(pid + 2)" in line)
    )  # fmt: skip
    assert lines[0] == (f"{SHOWN}:{second}:5: warning: programs (0, 0, 0) and (2, 0, 0) write the same bytes of 'dst'")
    assert lines[2].strip() == "^"
    assert lines[3].startswith(f"note: the other one writes at {SHOWN}:{first}:5: tl.store(dst + pid * BLOCK")


def test_leaving_an_array_is_warned_of(capsys: pytest.CaptureFixture[str]):
    shapes = ("--shape", "src=512", "--shape", "dst=500")
    out, err = output(capsys, f"{KERNELS}:unmasked_copy", "--grid", "8", *shapes)
    assert "program (7, 0, 0) leaves the array in line" in out
    assert "warning: 'dst': program (7, 0, 0) leaves the array" in err
    assert "'src'" not in err


def test_offsets_that_wrap_around_are_warned_of(capsys: pytest.CaptureFixture[str]):
    # At full volume 2,457,600 programs, in seconds: elements are looked at where those of a program differ alone.
    numbers = ("--arg", "stride=7864320", "--arg", "n=7864319")
    begin = time.process_time()
    out, err = output(capsys, f"{KERNELS}:batches", "--grid", "320,7680" if is_full() else "320,480", *numbers)
    assert time.process_time() - begin < 10
    line = (
        KERNELS.read_text()
        .splitlines()
        .index("    tl.store(dst + at, tl.load(src + at, mask=offs < n), mask=offs < n)")
        + 1
    )
    condition = "-2147483648 <= %stride*pid_x + 1024*pid_y <= 2147482624 does not hold"
    assert f"dst: the offsets in line {line} wrap around in 32 bits: {condition}" in out
    assert "no two programs write the same bytes" not in out
    assert f"warning: 'dst': the offsets in line {line} wrap around in 32 bits: {condition}" in err
    assert "note: tl.cast(..., tl.int64) of the program's id or of the stride makes offsets 64 bits wide" in err
    found = json.loads(output(capsys, f"{KERNELS}:batches", "--grid", "320,8", *numbers, "--json")[0])
    assert [each["array"] for each in found["wrapping"]] == ["src", "dst"]
    out, err = output(capsys, f"{KERNELS}:batches", "--grid", "273,8", *numbers)
    assert "dst: no two programs write the same bytes" in out
    assert err == ""


def test_holes_are_reported(capsys: pytest.CaptureFixture[str]):
    out, _ = output(capsys, f"{KERNELS}:holes", "--grid", "4", "--shape", "dst=4,64")
    assert "dst: 64 elements of 256 are written by no program, [0, 48] first" in out


def test_json(capsys: pytest.CaptureFixture[str]):
    out, _ = output(
        capsys, f"{KERNELS}:split_k_with_store", "--grid", "2,3", "--shape", "src=384", "--shape", "dst=128", "--json"
    )
    found = json.loads(out)
    assert (found["format"], found["kernel"], found["grid"]) == (1, "split_k_with_store", [2, 3, 1])
    assert [(each["kind"], each["array"]) for each in found["accesses"]] == [
        ("load", "src"), ("store", "dst"), ("atomic", "dst"),
    ]  # fmt: skip
    (array,) = found["arrays"]
    assert (array["writes"], array["holes"]) == ("collides", [])
    assert array["collision"]["programs"] == [[0, 0, 0], [0, 1, 0]]
    assert found["leaving"] == found["not_followed"] == []
    alone = json.loads(output(capsys, f"{KERNELS}:rows", "--json")[0])
    assert alone["arrays"][0]["conditions"][0] == "4*%stride >= 256"


def test_svg_shows_overlaps_holes_and_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "collision.svg"
    output(
        capsys, f"{KERNELS}:collision", "--grid", "3", "--shape", "dst=200", "--shape", "src=180", "--svg", str(path)
    )
    root = ET.fromstring(path.read_text())
    hints = [each.text for each in root.iter(f"{SVG}title")]
    assert hints.count("[60 to 63]: 2 programs, 0 to 1") == 2, "once read, once written"
    assert "[184 to 199]: no program" in hints
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "programs 0 and 1 write the same bytes" in texts
    assert "1 program leaves it" in texts
    fills = [each.get("fill") for each in root.iter(f"{SVG}rect")]
    assert fills.count("url(#clash)") == 1 + 2, "in the legend, and where two programs write"


def test_svg_of_thousands_of_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "many.svg"
    shapes = ("--shape", "dst=4096,64", "--shape", "src=4096,64")
    output(capsys, f"{KERNELS}:unmasked_copy", "--grid", "4096", *shapes, "--svg", str(path), "--wave", "132")
    assert path.stat().st_size < 100_000
    assert "blocks are too small for the picture: samples" in path.read_text()


def commands() -> list[str]:
    """Return the commands of the page, each in one line."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("tlx addresses") and "--svg" in line]


def test_pictures_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    assert len(commands()) == 2, "one for each order of tiles"
    for command in commands():
        arguments = shlex.split(command)[2:]
        place = arguments.index("--svg") + 1
        picture, drawn = ROOT / arguments[place], tmp_path / "drawn.svg"
        arguments[place] = str(drawn)
        assert output(capsys, *arguments)[1] == ""
        if os.environ.get("TLX_UPDATE_GOLDEN"):
            picture.write_text(drawn.read_text())
        assert drawn.read_text() == picture.read_text(), f"{picture.name} is not what the command draws"
        assert f"(images/{picture.name})" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((":masked_copy", "--svg", "x.svg"), "--svg: a picture shows the programs of a grid: give --grid"),
        ((":masked_copy", "--grid", "0"), "each from 1 to 2,147,483,647, found 0"),
        ((":masked_copy", "--grid", "1,1,1,1"), "each from 1 to 2,147,483,647, found (1, 1, 1, 1)"),
        (
            (":masked_copy", "--grid", "m"),
            "--grid: 'm' can't be computed: no name 'm', the names are BLOCK",
        ),
        ((":masked_copy", "--arg", "m=1"), "--arg: 'masked_copy' has no parameter 'm', its parameters are src, dst, n"),
        ((":masked_copy", "--arg", "n=1.5"), "--arg n: expected an integer, found '1.5'"),
        ((":masked_copy", "--arg", "src=1"), "--arg: 'src' is an array: give it as in randn[1024,512], found '1'"),
        ((":masked_copy", "--shape", "n=1"), "--shape: 'n' is a number: give it as --arg n=NUMBER"),
        ((":masked_copy", "--shape", "src=0"), "--shape src: expected sizes such as 1024,512, found '0'"),
        ((":masked_copy", "--shape", "src"), "--shape: expected NAME=VALUE, found 'src'"),
        (
            (":masked_copy", "--grid", "2", "--wave", "0", "--svg", "x"),
            "--wave: expected a number of programs, found 0",
        ),
        (
            (":masked_copy", "--grid", "2", "--svg", "x"),
            "--svg: no array is touched whose shape and addresses are known: give --shape and --arg",
        ),
        ((":nothing",), "no kernel 'nothing' in this file"),
    ],
)
def test_errors(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]):
    assert message in refused(capsys, f"{KERNELS}{arguments[0]}", *arguments[1:])


def test_the_shape_of_a_descriptor_has_its_dimensions(capsys: pytest.CaptureFixture[str]):
    kernel = f"{ROOT / 'examples' / 'hopper_gemm_ws.py'}:matmul"
    error = refused(capsys, kernel, "--grid", "1", "--shape", "a_desc=128")
    assert "--shape a_desc: the descriptor has 2 dimensions, found '128'" in error


def test_accesses_through_descriptors_are_named_by_their_arrays(capsys: pytest.CaptureFixture[str]):
    assert main(["addresses", f"{ROOT / 'examples' / 'hopper_gemm_ws.py'}:matmul", "--grid", "4"]) == 0
    named = re.findall(r"^%(\w+) \((TMA \w+)\): ", capsys.readouterr().out, re.MULTILINE)
    assert named == [(f"{name}_desc", "TMA load") for name in "aba"] + [("c_desc", "TMA store")] * 2


def test_a_launch_that_is_too_long(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Coverage.__init__, "__defaults__", (1000,))
    error = refused(capsys, f"{KERNELS}:endless", "--grid", "2")
    line = KERNELS.read_text().splitlines().index("def endless(dst):") + 1
    assert error.splitlines()[0] == (
        f"{SHOWN}:{line}:1: error: the addresses of this launch can't be computed: "
        "more than 1,000 operations would have to be run"
    )
    assert "note: shorter loops" in error
