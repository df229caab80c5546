"""The example of docs/cpu.md runs on this CPU, and the page shows the error that a check gives."""

# covers: target.cpu

from pathlib import Path

import pytest

import tlx_xdsl
from tests.unit.docs.documents import blocks

EXAMPLE = blocks("docs/cpu.md", "python")[0]


def run(path: Path, source: str) -> dict[str, object]:
    """Run a file, and give its names."""
    path.write_text(source)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(source, str(path), "exec"), names)
    return names


def test_the_example_runs(tmp_path):
    names = run(tmp_path / "scale.py", EXAMPLE)
    assert (names["y"] == names["x"] / 2).all()


def test_an_access_outside_is_reported_as_shown(tmp_path):
    path = tmp_path / "scale.py"
    wrong = EXAMPLE.replace("at < n), mask=at < n)", "at < n))").replace("BLOCK=1024)", "BLOCK=1024, checks=True)")
    assert wrong.count("at < n") == 1
    with pytest.raises(tlx_xdsl.CompilationError) as error:
        run(path, wrong)
    (shown,) = blocks("docs/cpu.md", "text")
    assert str(error.value).replace(str(path), "scale.py") == shown.rstrip("\n")
