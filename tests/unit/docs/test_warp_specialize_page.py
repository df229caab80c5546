"""docs/warp-specialize.md: its kernels are those that the compiler writes, and its tables list what there is."""

import re
from dataclasses import fields
from typing import get_args

import pytest

from benchmarks.compile import specialised
from tests.gallery.plain import matmul, matmul_gathered
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


PARTS = {
    "gathered loop": (matmul_gathered, "matmul_gathered", {"groups": 1, "persistent": False}),
    "split end": (matmul, "matmul", {"split": 4}),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_kernels_are_as_the_compiler_writes_them(part):
    """Compare the page with the source, both without comments."""
    module, name, decisions = PARTS[part]
    table = module.TLX_COMPILE[name]
    made = warp_specialized(getattr(module, name), table["signature"], table["constexprs"], Decisions(**decisions))
    (block,) = re.findall(rf"<!-- {part} -->\n```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    block, source = (re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE) for text in (block, made.source))
    assert block in source


def test_all_decisions_and_choosers_are_listed():
    (decided,) = re.findall(r"^## What is decided\n(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \|", decided, re.MULTILINE)
    assert rows == sorted(rows, key=rows.index)
    assert set(rows) == {each.name for each in fields(Decisions)}
    assert set(re.findall(r'"(\w+)"`? \|', TEXT)) == set(get_args(By))
