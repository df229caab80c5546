"""The display of progress: at a terminal and in a notebook, by tqdm."""

import io
import subprocess
import sys
import types

import pytest

from tlx_xdsl import progress
from tlx_xdsl.progress import Progress


class Terminal(io.StringIO):
    """A stream on a terminal."""

    def isatty(self):
        return True


def work(**options) -> str:
    stream = options.setdefault("stream", Terminal())
    with Progress(4, "programs", **options) as bar:
        for _ in range(4):
            bar.note("the last")
            bar.advance()
    return stream.getvalue()


def test_a_bar_shows_what_is_done_and_goes():
    pytest.importorskip("tqdm")
    shown = work(delay=0.0)
    assert "programs |" in shown
    assert "of 4 " in shown
    assert "the last" in shown
    # Only blanks are left on the line.
    assert shown.split("\r")[-2].strip() == ""


def test_no_bar_for_short_work_and_for_files():
    pytest.importorskip("tqdm")
    assert work() == ""
    assert work(delay=0.0, wanted=False) == ""
    assert work(delay=0.0, stream=io.StringIO()) == ""
    assert "of 4 " in work(delay=0.0, stream=io.StringIO(), wanted=True)


def test_nothing_is_shown_without_tqdm(monkeypatch):
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    assert work(delay=0.0) == ""


NOTEBOOK = """
import marimo
app = marimo.App()


@app.cell
def _():
    from tlx_xdsl.progress import Progress
    with Progress(3, "programs", delay=0.0) as bar:
        for number in range(3):
            bar.note(f"number {number}")
            bar.advance()
    kind = type(bar._bar).__name__
    kind
    return
"""


def test_a_notebook_of_marimo_has_its_own_bar(tmp_path):
    pytest.importorskip("marimo")
    notebook, page = tmp_path / "notebook.py", tmp_path / "page.html"
    notebook.write_text(NOTEBOOK)
    command = [sys.executable, "-m", "marimo", "export", "html", str(notebook), "-o", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "_MarimoBar" in page.read_text()


def test_a_notebook_of_jupyter_has_the_bar_for_it(monkeypatch):
    made = []

    class Bar:
        def __init__(self, **options):
            made.append((options["total"], options["desc"]))
            self.done = 0

        def update(self, count):
            self.done += count

        def set_postfix_str(self, text, refresh):
            made.append(text)

        def close(self):
            made.append(self.done)

    monkeypatch.setattr(progress, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "tqdm.notebook", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setitem(sys.modules, "ipykernel", types.SimpleNamespace())
    assert work(stream=io.StringIO()) == ""
    assert made == [(4, "programs"), *["the last"] * 4, 4]


def test_tqdm_is_loaded_only_for_a_bar():
    program = (
        "import sys\nfrom tlx_xdsl.progress import Progress\n"
        "with Progress(3, 'x') as bar:\n    bar.advance()\nsys.exit('tqdm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False).returncode == 0
