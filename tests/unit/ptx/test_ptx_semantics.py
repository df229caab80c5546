"""The table of instructions is complete, and the page shows it."""

from tests.unit.docs.documents import blocks
from tests.unit.ptx.snippets import ROOT
from tlx_xdsl.ptx.compute import NAMES
from tlx_xdsl.ptx.ops import BUILDERS
from tlx_xdsl.ptx.semantics import MEANINGS, table


def test_every_instruction_has_its_section():
    assert {*NAMES, *BUILDERS, "bra", "brx", "ret", "exit"} == MEANINGS.keys()


def test_the_page_has_the_table():
    assert table() in (ROOT / "docs" / "ptx.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_runs():
    (program,) = blocks("docs/ptx.md", "python")
    exec(compile(program, "docs/ptx.md", "exec"), {})
