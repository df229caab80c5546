"""Every example and test case of the designs of storage aliasing and of Triton to linalg exists as a test: the files
`SEEDS.md` say which."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLES = [Path(__file__).with_name("SEEDS.md"), ROOT / "tests" / "unit" / "cpu" / "linalg" / "SEEDS.md"]
TEXT = "\n".join(table.read_text() for table in TABLES)
ROWS = re.findall(r"^\| [^|]+ \| [^|]+ \| `([^`]+)` \|", TEXT, re.MULTILINE)


def test_the_table_is_read_whole():
    lines = TEXT.splitlines()
    headers = sum(line.startswith(("| Section", "|---")) for line in lines)
    assert len(ROWS) == sum(line.startswith("|") for line in lines) - headers > 80


@pytest.mark.parametrize("test", sorted(set(ROWS)))
def test_the_test_exists(test: str):
    file, kind, name = re.fullmatch(r"([^:@]+)(::|@)(.+)", test).groups()
    wanted = rf"^def {re.escape(name)}\(" if kind == "::" else re.escape(name)
    assert re.search(wanted, (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"
