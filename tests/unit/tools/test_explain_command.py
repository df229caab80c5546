"""`tlx explain` on the examples: what every pass did, and the diff of one."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tlx_xdsl.tools.explain_command import Stage, changes, diff
from tlx_xdsl.tools.tlx import main

EXAMPLES = Path(__file__).parents[3] / "examples"
GEMM = f"{EXAMPLES / 'hopper_gemm_ws.py'}:matmul"
ATTENTION = f"{EXAMPLES / 'blackwell_attention_ws.py'}:attention"


def module(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"module {{\n  tt.func public @kernel(%n: i32) {{\n{body}    tt.return\n  }}\n}}\n"


ONE, TWO = "%a = arith.addi %n, %n : i32", "%b = arith.muli %n, %n : i32"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([ONE], [ONE], "nothing"),
        ([ONE], [ONE, TWO], "+1 arith.muli"),
        ([ONE, TWO], [ONE], "-1 arith.muli"),
        ([ONE], [TWO], "+1 arith.muli, -1 arith.addi"),
        ([ONE, TWO], [TWO, ONE], "types, attributes or order only"),
        ([ONE], ["%a = arith.addi %n, %n overflow<nsw> : i32"], "types, attributes or order only"),
    ],
)
def test_changes_count_operations_by_kind(before: list[str], after: list[str], told: str):
    assert changes(Stage("before", module(*before)), Stage("pass", module(*after))) == told


def test_many_changes_are_summed_up():
    kinds = ["addi", "muli", "subi", "andi", "ori", "xori"]
    lines = [f"%v{i} = arith.{kind} %n, %n : i32" for i, kind in enumerate([*kinds, "addi"])]
    told = changes(Stage("before", module()), Stage("pass", module(*lines)))
    assert told.startswith("+2 arith.addi, +1 ")
    assert told.endswith(", and 2 more")


def test_a_diff_shows_no_locations():
    located = module(f"{ONE} loc(unknown)")
    found = diff([Stage("frontend", located), Stage("pass", module(ONE, TWO))], "pass")
    assert [line for line in found.splitlines() if line.startswith(("+ ", "- "))] == [f"+    {TWO}"]


@pytest.mark.parametrize("kernel", [GEMM, ATTENTION])
def test_the_table_adds_up(kernel: str, capsys: pytest.CaptureFixture[str]):
    """Each line's operations are those of the line above and what it says it changed, where all of that is shown."""
    assert main(["explain", kernel]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    counts = [(int(row.split()[2]), row) for row in rows if len(row.split()) > 2]
    assert len(counts) > 5
    for (above, _), (here, row) in pairwise(counts):
        told = sum(int(sign + number) for sign, number in re.findall(r"([+-])(\d+) ", row))
        assert " more" in row or here - above == told


def test_the_diff_of_a_pass(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "tlx-rewrite-local-alias"]) == 0
    changed = [line for line in capsys.readouterr().out.splitlines()[2:] if line[0] in "+-"]
    assert ["tlx.local_alias" in line for line in changed if line[0] == "-"] == [True] * 3
    assert ["ttg.memdesc_reinterpret" in line for line in changed if line[0] == "+"] == [True] * 3


def test_a_pass_that_did_nothing_says_so(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "expand-negf"]) == 0
    assert capsys.readouterr().out == "expand-negf changed nothing\n"


def test_an_unknown_pass_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", GEMM, "--diff", "nope"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: --diff: expected a pass that this kernel goes through (triton-tlx-fixup, ")
    assert error.rstrip().endswith("found 'nope'")
