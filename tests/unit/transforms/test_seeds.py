"""Every example and test case of the design of storage aliasing exists as a test: `SEEDS.md` says which."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROWS = re.findall(r"^\| [^|]+ \| [^|]+ \| `([^`]+)` \|", Path(__file__).with_name("SEEDS.md").read_text(), re.MULTILINE)


def test_the_table_is_read_whole():
    lines = Path(__file__).with_name("SEEDS.md").read_text().splitlines()
    headers = sum(line.startswith(("| Section", "|---")) for line in lines)
    assert len(ROWS) == sum(line.startswith("|") for line in lines) - headers > 80


@pytest.mark.parametrize("test", sorted(set(ROWS)))
def test_the_test_exists(test: str):
    file, kind, name = re.fullmatch(r"([^:@]+)(::|@)(.+)", test).groups()
    wanted = rf"^def {re.escape(name)}\(" if kind == "::" else re.escape(name)
    assert re.search(wanted, (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"
