"""The example of docs/cpu.md runs on this CPU, and the page shows the error that a check gives."""

# covers: target.cpu

import io
import re
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


def test_the_session_of_a_breakpoint_is_as_shown(tmp_path, monkeypatch, capsys):
    path = tmp_path / "scale.py"
    path.write_text(
        "import numpy as np\n\nimport tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n"
        "def scale(x, y, BLOCK: tl.constexpr):\n    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    top = tl.max(tl.load(x + at), axis=0)\n    if top > 150:\n        breakpoint()\n"
        "    tl.store(y + at, top)\n\n\n"
        "scale = tlx_xdsl.jit(scale, target='cpu')\nx = np.arange(256, dtype=np.float32)\n"
        "scale[(4,)](x, np.empty_like(x), BLOCK=64)\n"
    )
    (shown,) = [each for each in blocks("docs/cpu.md", "console") if "breakpoint()" in each]
    monkeypatch.setattr("sys.stdin", io.StringIO("print top\nquit\n"))
    run(path, path.read_text())
    found = capsys.readouterr().out.replace(str(path), "scale.py")
    without_events = [re.sub(r"event \d+ of \d+", "event", text) for text in (found, shown.partition("\n")[2])]
    assert without_events[0] == without_events[1]
