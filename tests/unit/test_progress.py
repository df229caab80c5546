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


def test_a_notebook_has_the_bar_of_its_kind(monkeypatch):
    made = []

    class Bar:
        def __init__(self, **options):
            made.append(options)
            self.done = 0

        def update(self, count):
            self.done += count

        def close(self):
            made.append(self.done)

    monkeypatch.setattr(progress, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "tqdm.notebook", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setitem(sys.modules, "marimo", types.SimpleNamespace(running_in_notebook=lambda: True))
    assert work(stream=io.StringIO()) == ""
    assert made == [{"total": 4, "desc": "programs"}, 4]


def test_tqdm_is_loaded_only_for_a_bar():
    program = (
        "import sys\nfrom tlx_xdsl.progress import Progress\n"
        "with Progress(3, 'x') as bar:\n    bar.advance()\nsys.exit('tqdm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False).returncode == 0
