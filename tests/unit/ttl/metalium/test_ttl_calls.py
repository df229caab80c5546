"""Ten programs beside the vendor's compiler: the page has the lines of our C++ as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.ttl_calls import PROGRAMS, Program, counts, ours

PAGE = Path(__file__).parents[4] / "docs" / "ttl-card.md"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_lines(program: Program, tmp_path: Path) -> None:
    path = tmp_path / f"{program.name}.py"
    path.write_text(program.text, encoding="utf-8")
    (row,) = [
        each for each in PAGE.read_text(encoding="utf-8").splitlines() if each.startswith(f"| `{program.name}` |")
    ]
    assert row.split("|")[3].strip() == counts(ours(path, program))
