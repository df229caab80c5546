"""The size of the package: what counts, and what is said above a budget."""

import pytest

from benchmarks import size

pytestmark = pytest.mark.quick

TEXT = '''"""Not counted: a docstring."""

import json
from a import (
    b,  # not counted
    c,
)


def f(x):
    """A docstring is not counted."""
    return x + "counted"
'''


def test_tokens_of_code_count_and_those_of_imports_apart():
    source = size.measured("text/a.py", TEXT)
    assert (source.lines, source.tokens, source.imports) == (7, 21, 11)
    assert (source.package, size.measured("errors.py", "").package) == ("text", "(top)")


def test_sums_leave_out_what_is_no_compiler():
    names = [
        "ttl/a.py",
        "kernels/a.py",
        "ptx/a.py",
        "runtime/check/a.py",
        "runtime/checked.py",
        "analysis/a.py",
        "py.typed",
    ]
    found = size.figures([size.Source(name, tokens=tokens) for tokens, name in enumerate(names, 1)])
    assert (found["total"], found["core"], found["compiler"]) == (21, 18, 11)


def test_folders_and_small_files_are_counted():
    small = size.SMALL - 1
    every = [
        size.Source("a/__init__.py", tokens=1),
        size.Source("a/b.py", tokens=small, imports=30),
        size.Source("a/c.pyi"),
        size.Source("a/d/e.py", tokens=small + 1),
        *(size.Source(f"{size.UNGROUPED[0]}/{number}.py", tokens=600) for number in range(4)),
    ]
    found = size.figures(every)
    assert found[size.FULLEST] == 3
    assert found[size.SMALL_FILES] == 1
    assert found[size.IMPORTS] == 1.0


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ({"ttl": 1_000, "imports": 7.5}, []),
        (
            {"ttl": 12_345, "imports": 7.62},
            [
                "ttl: 12,345 is 11,345 above its budget of 1,000; raise it in the commit that needs it, with a reason",
                "imports: 7.62 is 0.12 above its budget of 7.5; raise it in the commit that needs it, with a reason",
            ],
        ),
        ({"ttl": 1, "imports": 1, "new": 1}, ["new: expected a budget in benchmarks/size.py, found none"]),
        ({"ttl": 1}, ["imports: expected a package of this name, found only its budget"]),
    ],
)
def test_what_is_above_its_budget_is_said(found: dict[str, float], lines: list[str]):
    assert size.complaints(found, {"ttl": 1_000, "imports": 7.5}) == lines


def test_every_wing_and_part_is_there():
    """A folder that has moved would count as a part of the compiler."""
    package = size.ROOT / "tlx_xdsl"
    assert [name for name in (*size.WINGS, *size.BESIDE, *size.UNGROUPED) if not (package / name).is_dir()] == []


def test_above_a_budget_the_command_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    every = [size.Source("ttl/a.py", 2, 10), size.Source("text/a.py", 1, 300, 20)]
    monkeypatch.setattr(size, "sources", lambda revision: iter(every if revision is None else every[1:]))
    monkeypatch.setattr("sys.argv", ["size", "--against", "HEAD"])
    names = size.figures(every)
    monkeypatch.setattr(size, "BUDGETS", {name: 1_000 for name in names})
    assert size.main() == 0
    printed = capsys.readouterr()
    assert "ttl (wing)                  1        2         10      1,000          +10" in printed.out
    assert printed.err == ""
    monkeypatch.setattr(size, "BUDGETS", {name: 1_000 for name in names} | {"ttl": 9})
    assert size.main() == 1
    assert capsys.readouterr().err.startswith("ttl: 10 is 1 above its budget of 9; raise it in the commit")
