"""Diffs side by side, in pages and at a terminal: every line is there, and the words that differ are marked."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import tlx_xdsl
from tlx_xdsl.runtime.driver.stages import Stage, kept_lines, unified_diff
from tlx_xdsl.runtime.show.diffs import folded, rows_as_html, rows_of
from tlx_xdsl.runtime.show.pages import DARK, LIGHT, STYLE
from tlx_xdsl.text.highlight import KINDS, pieces_of
from tlx_xdsl.tools.commands.diff_text import diff
from tlx_xdsl.tools.launch_line.loading import load_kernel
from tlx_xdsl.tools.tlx import main

GEMM = f"{Path(__file__).parents[3] / 'examples' / 'hopper_gemm_ws.py'}:matmul"
BEFORE = ["%a = tlx.alloc : f16", "%b = tlx.group %a", "tt.return"]
AFTER = ["%a = ttg.alloc : f16", "ttg.barrier", "tt.return"]
LINES = st.lists(st.sampled_from(["%a = x.a 1", "%a = x.a 2", "%b = x.b %a", "x.c", ""]), max_size=8)


@pytest.fixture(scope="module")
def step():
    kernel, defaults = load_kernel(GEMM)
    return tlx_xdsl.first_step(kernel, defaults.signature, defaults.constexprs).to("tlx-storage-alias-lowering")


def marked(side):
    return [text for _, text, differs in side.pieces if differs]


def test_what_became_another_line_stands_beside_it():
    first, second, third, last = rows_of(BEFORE, AFTER)
    assert (marked(first.before), marked(first.after)) == (["tlx.alloc"], ["ttg.alloc"])
    assert (second.before.text, second.after) == (BEFORE[1], None)
    assert (third.before, third.after.text, third.after.number) == (None, AFTER[1], 2)
    assert last.same
    assert last.before.text == last.after.text == "tt.return"


@given(LINES, LINES)
def test_rows_hold_both_texts_in_order(before, after):
    rows = rows_of(before, after)
    assert [row.before.text for row in rows if row.before] == before
    assert [row.after.text for row in rows if row.after] == after
    for row in rows:
        if row.before and row.after:
            assert row.same == (row.before.text == row.after.text) == (not marked(row.before) and not marked(row.after))
    runs = list(folded(rows, context=1))
    assert [row for _, run in runs for row in run] == rows
    assert all(row.same for is_far, run in runs if is_far for row in run)


@pytest.mark.parametrize("language", ["mlir", "python"])
def test_pieces_are_the_line(language, step):
    text = step.text if language == "mlir" else Path(__file__).read_text(encoding="utf-8")
    pieces = pieces_of(text.splitlines(), language)
    assert ["".join(part for _, part in line) for line in pieces] == text.splitlines()
    assert {kind for line in pieces for kind, _ in line} <= {"", *(kind for _, kind in KINDS)}


def test_words_of_mlir():
    line = '%a = tt.load %p {x = "%s"} : tensor<64xf16, #blocked> // %c'
    kinds = [piece for piece in pieces_of([line], "mlir")[0] if piece[0]]
    assert kinds == [
        ("value", "%a"), ("keyword", "tt.load"), ("value", "%p"), ("string", '"%s"'), ("type", "tensor"),
        ("number", "64x"), ("type", "f16"), ("attribute", "#blocked"), ("comment", "// %c"),
    ]  # fmt: skip


# --- at a terminal ----------------------------------------------------------------------------------------------------


@pytest.fixture
def stages(step):
    return [Stage(each.name, each.printed) for each in step.path[-2:]]


def test_in_a_pipe_it_is_a_unified_diff(stages, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert diff(stages, stages[1].name) == unified_diff(*stages)


def test_colours_change_nothing_of_the_text(stages, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = diff(stages, stages[1].name)
    plain = [re.sub(r"\033\[[\d;]*m", "", line) for line in coloured.splitlines()]
    changed = sorted(line for line in unified_diff(*stages).splitlines() if line[0] in "+-")
    assert sorted(line for line in plain if line[:1] in ("+", "-")) == changed
    assert "\033[7;31mtlx.storage_alias_spec\033[0m" in coloured


@pytest.mark.parametrize("colour", ["NO_COLOR", "FORCE_COLOR"])
def test_side_by_side_fits_the_terminal(colour, stages, monkeypatch):
    monkeypatch.setenv(colour, "1")
    monkeypatch.setenv("COLUMNS", "100")
    lines = re.sub(r"\033\[[\d;]*m", "", diff(stages, stages[1].name, side_by_side=True)).splitlines()
    assert max(map(len, lines)) <= 100
    # Put together again, either side has all of its changed lines.
    sides = ["".join(line[5:48] for line in lines[1:]), "".join(line[56:] for line in lines[1:])]
    for line in unified_diff(*stages).splitlines()[2:]:
        if line[0] in "+-":
            squeezed = line[1:].replace(" ", "")
            assert squeezed in sides[line[0] == "+"].replace(" ", "")


def test_the_command_knows_side_by_side(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["explain", GEMM, "--diff", "tlx-rewrite-local-alias", "--side-by-side"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("before tlx-rewrite-local-alias")
    assert re.search(r"%\w+ = tlx\.local_alias .* \| +\d+ +%\w+ = ttg\.", out)


# --- pages ------------------------------------------------------------------------------------------------------------


def test_a_page_of_a_diff(step):
    page = step.show_diff()
    assert page.text == unified_diff(*(Stage(each.name, each.printed) for each in step.path[-2:]))
    assert page.html.count('<div class="row">') == len(rows_of(step.before.lines, kept_lines(step.before, step)))
    assert '<b><span class="keyword">tlx.storage_alias_spec</span></b>' in page.html
    assert "equal lines</summary>" in page.html
    assert step.show_diff(step).text == "nothing has changed"
    assert tlx_xdsl.show(step.module(), since=step.before.module(), title=step.name).html == page.html


def test_without_pygments_words_have_no_kind(monkeypatch):
    monkeypatch.setitem(sys.modules, "tlx_xdsl.text.highlight", None)
    html = rows_as_html(rows_of(BEFORE, AFTER))
    assert "%a = <b>tlx.alloc</b> : f16" in html
    assert "span" not in html


def luminance(colour: str) -> float:
    """The relative luminance of a colour, of the Web Content Accessibility Guidelines 2.2."""
    digits = colour.lstrip("#")
    digits = "".join(2 * each for each in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_word_can_be_read_on_every_ground(theme):
    colours = dict(each[2:].split(":") for each in theme.split(";") if each.startswith("--"))
    grounds = {"paper", "head", "lit", "gone", "came", "gone-word", "came-word", "none"}
    for text in set(colours) - grounds - {"edge"}:
        for ground in grounds:
            low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)
    assert all(f".tlx .{kind}{{" in STYLE for _, kind in KINDS)


# --- the explorer -----------------------------------------------------------------------------------------------------


def test_the_explorer_begins_with_our_pipeline_in_order(step):
    from tlx_xdsl.tools.tlx_gui import passes_in_order, shown

    names = list(passes_in_order())
    pipeline = [*(each.name for each in step.path[1:]), *step.remaining]
    assert names[: len(pipeline)] == pipeline
    assert "canonicalize" in names
    assert "convert-linalg-to-loops" in names
    assert len(set(names)) == len(names)
    assert "#loc" in step.printed
    assert shown(step.printed, None) == step.text
    assert shown("no module", None) == "no module"


def test_runs_are_folded_where_they_are_long():
    lines = [str(number) for number in range(20)]
    rows = rows_of(lines, [*lines[:10], "new", *lines[10:]])
    assert [(is_far, len(run)) for is_far, run in folded(rows)] == [(True, 7), (False, 7), (True, 7)]
    assert all(far != near for (far, _), (near, _) in pairwise(folded(rows)))
