"""The examples of docs/cpu.md and of the README run on this CPU, and the page shows the error that a check gives."""

# covers: target.cpu

from pathlib import Path

import pytest

import tlx_xdsl
from tests.unit.docs.documents import blocks

EXAMPLES = {document: blocks(document, "python")[at] for document, at in (("docs/cpu.md", 0), ("README.md", 1))}


def run(path: Path, source: str) -> dict[str, object]:
    """Run a file, and give its names."""
    path.write_text(source)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(source, str(path), "exec"), names)
    return names


@pytest.mark.parametrize("document", EXAMPLES)
def test_the_example_runs(tmp_path, document):
    names = run(tmp_path / "scale.py", EXAMPLES[document])
    assert (names["y"] == names["x"] / 2).all()


def test_an_access_outside_is_reported_as_shown(tmp_path):
    path = tmp_path / "scale.py"
    source = EXAMPLES["docs/cpu.md"]
    wrong = source.replace("at < n), mask=at < n)", "at < n))").replace("BLOCK=1024)", "BLOCK=1024, checks=True)")
    assert wrong.count("at < n") == 1
    with pytest.raises(tlx_xdsl.CompilationError) as error:
        run(path, wrong)
    (shown,) = blocks("docs/cpu.md", "text")
    assert str(error.value).replace(str(path), "scale.py") == shown.rstrip("\n")
