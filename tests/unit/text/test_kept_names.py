"""Diffs between the passes of the ten examples: few changed lines are renamings, and the text means what it did.

`pytest -s` prints the figures of each pass and example. The oracle of a renaming is GNU diff, which compares the two
texts with all names erased by a pattern of this file: a changed line that is equal there differs in names alone.
"""

import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module, passes_for
from tlx_xdsl.text.kept_names import with_names_of
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.tools.launch_line.loading import load_kernel
from tlx_xdsl.transforms.pipelines import is_plain, run_pipeline

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = ("ampere_gemm_pipelined", "blackwell_attention_ws", "blackwell_gemm_ws", "hopper_attention_pingpong",
         "hopper_attention_pipelined", "hopper_attention_ws", "hopper_gemm_persistent_cooperative",
         "hopper_gemm_persistent_pingpong", "hopper_gemm_pipelined", "hopper_gemm_ws")  # fmt: skip
MOST = 0.1
"""The share of changed lines that may be renamings, at every pass of every example."""


@cache
def texts(example: str) -> list[tuple[str, str]]:
    """The text after the frontend and after each pass that changed it, without locations, with the pass's name."""
    kernel = "attention" if "attention" in example else "matmul"
    loaded, defaults = load_kernel(f"{EXAMPLES / example}.py:{kernel}")
    options = {name: value for name, value in defaults.options.items() if name in ("num_warps", "target")}
    wanted, profile = Specialization(defaults.signature, defaults.constexprs, **options), profile_for("3.9.0")
    module = frontend_module(loaded.source, wanted, profile)
    found = [("frontend", print_module(module, locations=False))]

    def note(done: ModulePass, module: ModuleOp) -> None:
        printed = print_module(module, locations=False)
        if printed != found[-1][1]:
            found.append((done.name, printed))

    run_pipeline(module, passes_for(profile, plain=is_plain(module)), make_context(), note)
    return found


def without_names(text: str) -> str:
    kept = re.compile(r'("[^"]*")|[%^][\w$.-]+|#(?:blocked|linear|mma|shared|smem|tmem|map)[\w$]*')
    return kept.sub(lambda found: found[1] or "~", text)


def changed_lines(before: str, after: str, tmp_path: Path) -> tuple[set[int], set[int]]:
    """The numbers of the lines of either text that GNU diff shows."""
    (tmp_path / "a").write_text(before)
    (tmp_path / "b").write_text(after)
    # A blank line for an equal one, `-` and `+` for the others.
    marks = ("--old-line-format=-\n", "--new-line-format=+\n", "--unchanged-line-format= \n")
    done = subprocess.run(["diff", *marks, "a", "b"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    sides: list[set[int]] = []
    for mark in "-+":
        lines = [line for line in done.stdout.splitlines() if line in (" ", mark)]
        sides.append({number for number, line in enumerate(lines) if line == mark})
    return sides[0], sides[1]


@pytest.mark.skipif(subprocess.run(["sh", "-c", "command -v diff"], capture_output=True).returncode, reason="GNU diff")
@pytest.mark.parametrize("example", NAMES)
def test_few_changed_lines_are_renamings(example: str, tmp_path: Path):
    before_all = after_all = 0
    for (_, before), (name, printed) in pairwise(texts(example)):
        after = with_names_of(before, printed)
        shown = changed_lines(before, after, tmp_path)
        real = changed_lines(without_names(before), without_names(after), tmp_path)
        count = sum(map(len, shown))
        renamed = sum(len(ours - theirs) for ours, theirs in zip(shown, real, strict=True))
        plain = sum(map(len, changed_lines(before, printed, tmp_path)))
        before_all, after_all = before_all + plain, after_all + count
        print(f"{example:36} {name:32} {plain:5} -> {count:5} changed lines, {renamed:3} of them renamings")
        assert renamed <= MOST * count
    assert 0 < after_all <= before_all


@pytest.mark.parametrize("example", NAMES)
def test_other_names_are_the_same_module(example: str):
    """One name for one name, everywhere: that is what makes two texts one module."""
    for (_, before), (name, printed) in pairwise(texts(example)):
        after = with_names_of(before, printed)
        if after == printed:
            continue
        ours, theirs = parse_module(after, filename="after"), parse_module(printed, filename="printed")
        assert ours.is_structurally_equivalent(theirs), name


def test_what_is_new_has_a_name_that_is_free():
    before = "%0 = a.load\n%1 = a.mul %0, %0\na.store %1\n"
    after = "%0 = a.constant\n%1 = a.load\n%2 = a.mul %1, %0\na.store %2\n"
    assert with_names_of(before, after) == "%2 = a.constant\n%0 = a.load\n%1 = a.mul %0, %2\na.store %1\n"


def test_a_value_that_is_made_otherwise_keeps_its_name():
    before = "%x = a.load\n%x_1 = a.mul %x, %x\na.store %x_1\n"
    after = "%x = a.load\n%c = a.constant\n%x_2 = a.shift %x, %c\na.store %x_2\n"
    assert with_names_of(before, after) == "%x = a.load\n%c = a.constant\n%x_1 = a.shift %x, %c\na.store %x_1\n"


def test_what_has_moved_keeps_its_name():
    before = "%a = a.load\n%0 = a.cast %a, 1\n%1 = a.mul %a\n%2 = a.neg %1\n"
    after = "%a = a.load\n%0 = a.mul %a\n%1 = a.neg %0\n%2 = a.cast %a, 1\n"
    assert with_names_of(before, after) == "%a = a.load\n%1 = a.mul %a\n%2 = a.neg %1\n%0 = a.cast %a, 1\n"


def test_what_moves_to_another_function_has_a_name_of_that():
    before = "  tt.func @f() {\n    %0 = a.x\n  }\n  tt.func @g() {\n    %0 = a.y\n  }\n"
    after = "  tt.func @f() {\n  }\n  tt.func @g() {\n    %0 = a.y\n    %1 = a.x\n  }\n"
    assert with_names_of(before, after) == after


def test_aliases_go_by_what_they_stand_for():
    before = '#s = #x.a<1>\n#s1 = #x.b<"%0 #s">\n%0 = a.alloc : #s\n%1 = a.alloc : #s1\n'
    after = '#s = #x.b<"%0 #s">\n#s1 = #x.a<1>\n#s2 = #x.c\n%0 = a.alloc : #s1\n%1 = a.alloc : #s\n%2 = a.new : #s2\n'
    found = with_names_of(before, after)
    assert (
        found
        == '#s = #x.a<1>\n#s1 = #x.b<"%0 #s">\n#s2 = #x.c\n%0 = a.alloc : #s\n%1 = a.alloc : #s1\n%2 = a.new : #s2\n'
    )


def test_names_of_one_function_are_not_those_of_another():
    function = "  tt.func @{}() {{\n    %0 = a.{}\n    a.use %0\n  }}\n"
    before = function.format("f", "x") + function.format("g", "y")
    after = (
        function.format("f", "x").replace("%0", "%9")
        + "  tt.func @new() {\n    %0 = a.z\n  }\n"
        + function.format("g", "y")
    )
    assert with_names_of(before, after) == after.replace("%9", "%0")


@given(st.lists(st.sampled_from(["%a", "%b", "%0", "%1", "%2"]), min_size=1, max_size=8), st.permutations(range(5)))
def test_a_renamed_text_gets_its_names_back(uses: list[str], order: list[int]):
    names = ["%a", "%b", "%0", "%1", "%2"]
    text = "".join(f"{name} = op.{name[1]}\n" for name in names) + "".join(f"op.use {name}\n" for name in uses)
    other = re.sub(r"%\w", lambda found: f"%v{order[names.index(found[0])]}", text)
    assert with_names_of(text, other) == text
