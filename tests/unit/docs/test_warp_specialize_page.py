"""docs/warp-specialize.md: its kernels are those that the compiler writes, and its tables list what there is."""

import re
from dataclasses import fields
from typing import get_args

from benchmarks.compile import specialised
from tests.gallery.plain import matmul_gathered
from tlx_xdsl.runtime.specialize.settings import By
from tlx_xdsl.runtime.specialize.specialized import warp_specialized
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

TEXT = specialised.PAGE.read_text(encoding="utf-8")


def test_the_kernels_are_as_the_compiler_writes_them():
    assert specialised.updated(TEXT) == TEXT, "run python -m benchmarks.compile.specialised"


def test_a_page_without_a_kernel_is_no_page():
    assert all(
        TEXT.count(f"<!-- {kind} {name} -->") == 1 for name in specialised.SHOWN for kind in ("plain", "specialised")
    )


def test_the_loop_of_copies_is_as_the_compiler_writes_it():
    """Compare the page with the source without its comments."""
    table = matmul_gathered.TLX_COMPILE["matmul_gathered"]
    decisions = Decisions(groups=1, persistent=False)
    made = warp_specialized(matmul_gathered.matmul_gathered, table["signature"], table["constexprs"], decisions)
    (block,) = re.findall(r"<!-- gathered loop -->\n```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert block in re.sub(r"^ *#.*\n", "", made.source, flags=re.MULTILINE)


def test_all_decisions_and_choosers_are_listed():
    (decided,) = re.findall(r"^## What is decided\n(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \|", decided, re.MULTILINE)
    assert rows == sorted(rows, key=rows.index)
    assert set(rows) == {each.name for each in fields(Decisions)}
    assert set(re.findall(r'"(\w+)"`? \|', TEXT)) == set(get_args(By))
