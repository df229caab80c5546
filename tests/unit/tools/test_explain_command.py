"""`tlx explain` on the examples: what every pass did, and the diff of one."""

import argparse
import re
from itertools import pairwise
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.versions import INSTALLED, is_installed
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.runtime.driver.stages import Stage, changes
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.tools.commands import compile as compile_command
from tlx_xdsl.tools.commands.diff_text import diff
from tlx_xdsl.tools.commands.layout_report import layout_section, why
from tlx_xdsl.tools.launch_line.request import read
from tlx_xdsl.tools.launch_line.specialization import specialization_of
from tlx_xdsl.tools.tlx import main

EXAMPLES = Path(__file__).parents[3] / "examples"
GEMM = f"{EXAMPLES / 'hopper_gemm_ws.py'}:matmul"
ATTENTION = f"{EXAMPLES / 'blackwell_attention_ws.py'}:attention"


def module(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"module {{\n  tt.func public @kernel(%n: i32) {{\n{body}    tt.return\n  }}\n}}\n"


ONE, TWO = "%a = arith.addi %n, %n : i32", "%b = arith.muli %n, %n : i32"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([ONE], [ONE], "nothing"),
        ([ONE], [ONE, TWO], "+1 arith.muli"),
        ([ONE, TWO], [ONE], "-1 arith.muli"),
        ([ONE], [TWO], "+1 arith.muli, -1 arith.addi"),
        ([ONE, TWO], [TWO, ONE], "types, attributes or order only"),
        ([ONE], ["%a = arith.addi %n, %n overflow<nsw> : i32"], "types, attributes or order only"),
    ],
)
def test_changes_count_operations_by_kind(before: list[str], after: list[str], expected: str):
    assert changes(Stage("before", module(*before)), Stage("pass", module(*after))) == expected


def test_many_changes_are_summed_up():
    kinds = ["addi", "muli", "subi", "andi", "ori", "xori"]
    lines = [f"%v{i} = arith.{kind} %n, %n : i32" for i, kind in enumerate([*kinds, "addi"])]
    summary = changes(Stage("before", module()), Stage("pass", module(*lines)))
    assert summary.startswith("+2 arith.addi, +1 ")
    assert summary.endswith(", and 2 more")


def test_a_diff_shows_no_locations():
    located = module(f"{ONE} loc(unknown)")
    found = diff([Stage("frontend", located), Stage("pass", module(ONE, TWO))], "pass")
    assert [line for line in found.splitlines() if line.startswith(("+ ", "- "))] == [f"+    {TWO}"]


@pytest.mark.parametrize("kernel", [GEMM, ATTENTION])
def test_the_table_adds_up(kernel: str, capsys: pytest.CaptureFixture[str]):
    """Each line's operations are those of the line above and what it says it changed, where all of that is shown."""
    assert main(["explain", kernel, "--all"]) == 0
    rows = capsys.readouterr().out.partition("\ntotal")[0].splitlines()[2:]
    counts = [(int(row.split()[2]), row) for row in rows if len(row.split()) > 2]
    assert len(counts) > 5
    for (above, _), (here, row) in pairwise(counts):
        counted = sum(int(sign + number) for sign, number in re.findall(r"([+-])(\d+) ", row))
        assert " more" in row or here - above == counted


def test_passes_that_changed_nothing_share_a_line(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--all"]) == 0
    every = capsys.readouterr().out.partition("\ntotal")[0].splitlines()
    assert main(["explain", GEMM]) == 0
    some = capsys.readouterr().out.partition("\ntotal")[0].splitlines()
    idle = [row.split()[0] for row in every if row.endswith("  nothing")]
    assert len(idle) > 5
    assert not any(row.startswith(tuple(f"{name} " for name in idle)) for row in some)
    (shared,) = [row for row in some if " more passes " in row]
    assert re.fullmatch(rf"{len(idle)} more passes +\d+\.\d +nothing: --all lists them", shared)
    assert len(some) == len(every) - len(idle) + 1


def test_the_diff_of_a_pass(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "tlx-rewrite-local-alias"]) == 0
    changed = [line for line in capsys.readouterr().out.splitlines()[2:] if line[0] in "+-"]
    assert sum("tlx.local_alias" in line for line in changed if line[0] == "-") == 3
    assert sum("ttg.memdesc_reinterpret" in line for line in changed if line[0] == "+") == 3
    # Triton 3.8 takes only views that are as large as their allocation, which grows for them.
    assert len(changed) == 6 or any("ttg.local_alloc" in line for line in changed)


def test_a_pass_that_did_nothing_says_so(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "expand-negf"]) == 0
    assert capsys.readouterr().out == "expand-negf changed nothing\n"


def test_the_diff_of_a_pass_by_its_older_name(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "tlx-barrier-lifecycle"]) == 0
    assert "after tlx-end-barrier-lifetimes" in capsys.readouterr().out


def test_an_unknown_pass_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "nope"]) == 1
    error = capsys.readouterr().err
    # With Triton 3.8 a remark on the kernel stands before it.
    assert "\nerror: --diff: expected a pass that this kernel goes through (tlx-check-target, " in f"\n{error}"
    assert error.rstrip().endswith("found 'nope'")


# --- layouts ----------------------------------------------------------------------------------------------------------

ATTENTION_ON_HOPPER = f"{EXAMPLES / 'hopper_attention_ws.py'}:attention"


@pytest.fixture(scope="module")
def attention() -> tuple[ModuleOp, ModuleOp]:
    """The modules after the frontend and after the last pass."""
    parser = argparse.ArgumentParser()
    compile_command.add_arguments(parser)
    request = read(parser.parse_args([ATTENTION_ON_HOPPER]))
    texts: list[str] = []
    compile_text(request.source, specialization_of(request), verify=False, on_stage=lambda _, text: texts.append(text))
    return parse_module(texts[0]), parse_module(texts[-1])


def test_the_layout_section(attention: tuple[ModuleOp, ModuleOp]):
    section = layout_section(attention[1])
    q = section.partition("  q: 2x64x128xf16, nvmma_shared, swizzle of 128 bytes\n")[2].splitlines()
    assert [re.sub(r" \(.*", "", line) for line in q[:4]] == [
        "    2 x TMA writes",
        "    2 x wgmma reads A",
        "    2 x threads write: 16 bits per lane, no bank conflicts",
        "    2 x TMA reads",
    ]
    assert re.search(r"\d+ x in a loop, through shared memory: at most 32768 bytes and 512 wavefronts", section)
    assert re.search(r"global memory\n  2 x store: ", section)


def test_layouts_of_a_version_that_is_not_installed(capsys: pytest.CaptureFixture[str]):
    absent = "3.8" if is_installed("3.7") else "3.7"
    assert main(["explain", GEMM, "--triton-version", absent]) == 0
    section = capsys.readouterr().out.partition("\ntotal")[2]
    assert f"layouts before the passes of stock Triton {absent}, which is not installed" in section


@pytest.mark.backend
@pytest.mark.skipif(INSTALLED is None, reason="stock Triton is not installed")
def test_layouts_after_stock_triton(capsys: pytest.CaptureFixture[str]):
    """Buffers keep their names, accumulators leave by stmatrix, and no conversion is left."""
    assert main(["explain", GEMM]) == 0
    section = capsys.readouterr().out.partition("\ntotal")[2]
    assert "layouts after the passes of stock Triton" in section
    # Triton 3.8 has b and c in one array.
    together = profile_for(INSTALLED).views_fill_allocations
    assert len(re.findall(r"^  [abc]: \d+x", section, re.MULTILINE)) == (2 if together else 3)
    assert re.search(r"threads write: stmatrix, 128 bits per lane, no bank conflicts \(\d+ wavefronts", section)
    assert "\nlayout conversions: none\n" in section


def test_why(attention: tuple[ModuleOp, ModuleOp]):
    frontend, last = attention
    lines = EXAMPLES.joinpath("hopper_attention_ws.py").read_text().splitlines()
    dot = 1 + next(index for index, line in enumerate(lines) if "acc = tlx.async_dot(p.to" in line)
    assert why(last, "%acc_4", frontend).splitlines() == [
        f"%acc_4, line {dot + 1}: 64x128xf32, accumulator of wgmma with N = 128, 4x1 warps",
        f"  <- passed on by the wait at line {dot + 1}: %acc_3",
        f"  <- the accumulator of the dot at line {dot}: wgmma leaves it so in registers",
    ]
    # A variable with one layout needs no number, nor has a buffer one.
    assert why(last, "scores", frontend).startswith("%scores, line ")
    buffer = why(last, "%k", frontend).splitlines()
    assert buffer[1] == "  <- the default for a buffer of 2x128x128 elements of 16 bits"
    assert buffer[2].startswith("  <- TMA writes, line ")
    assert buffer[3].startswith("  <- wgmma reads B, line ")


def test_the_names_of_values_are_those_of_the_text(capsys: pytest.CaptureFixture[str], attention):
    """The names that `tlx compile` prints after the last pass are those that `--why` takes."""
    assert main(["compile", ATTENTION_ON_HOPPER, "--emit", "ttgir", "-o", "-"]) == 0
    printed = re.findall(r"^ *(%[\w]+) = .*-> tensor<64x128xf32, #mma>", capsys.readouterr().out, re.MULTILINE)
    assert len(printed) > 3
    for name in printed:
        assert "accumulator of wgmma" in why(attention[1], name, attention[0]).splitlines()[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nope", r"no value is called 'nope'; those with layouts are acc, .*, and \d+ more$"),
        ("%nope", "no value is called '%nope'"),
        ("%LENGTH", "'%LENGTH' has no layout, it is of type i32$"),
        ("acc", r"'acc' stands for values of several layouts; name one of %acc\w* \(.*, line \d+\), %acc\w* \("),
    ],
)
def test_why_refuses_what_has_no_answer(value: str, expected: str, attention: tuple[ModuleOp, ModuleOp]):
    with pytest.raises(CompilationError) as refused:
        why(attention[1], value, attention[0])
    first = str(refused.value).splitlines()[0]
    assert re.match(r".*hopper_attention_ws.py:\d+:\d+: error: --why: ", first)
    assert re.search(expected, first)


def test_why_on_the_command_line(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--why", "nope"]) == 1
    assert re.search(r"^.*hopper_gemm_ws.py:\d+:\d+: error: --why: no value", capsys.readouterr().err, re.MULTILINE)
    assert main(["explain", GEMM, "--why", "acc"]) == 0
    assert "wgmma leaves it so in registers" in capsys.readouterr().out


PLAIN = """\
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def copy(x, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y + i, tl.load(x + i))


TLX_COMPILE = {"copy": {"signature": {"x": "*fp32:16", "y": "*fp32:16"}, "constexprs": {"SIZE": 1024}}}
"""


def test_plain_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "plain.py"
    path.write_text(PLAIN)
    kernel = f"{path}:copy"
    assert main(["explain", kernel, "--why", "i"]) == 1
    assert "error: --why: stock Triton chooses the layouts of plain Triton code" in capsys.readouterr().err
    assert main(["explain", kernel, "--why", "i", "--conversion", "own"]) == 0
    assert "blocked, 1 per thread" in capsys.readouterr().out
    assert main(["explain", kernel]) == 0
    printed = capsys.readouterr().out
    if INSTALLED is None:
        assert "stock Triton chooses them" in printed
    else:
        assert "1 x load: 128 bits per lane, 16 sectors per request, 100% of their bytes used" in printed
