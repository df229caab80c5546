"""Paths in diagnostics: relative to the current folder, and whole where that is the root."""

from tlx_xdsl.errors import shown_path, with_shown_paths


def test_below_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown_path(f"{tmp_path}/kernels/add.py") == "kernels/add.py"
    assert shown_path("/elsewhere/add.py") == "/elsewhere/add.py"
    assert with_shown_paths(f"{tmp_path}/add.py:3:1: a // b") == "add.py:3:1: a // b"


def test_in_the_root_all_paths_are_whole(monkeypatch):
    """Containers run programs there; a text has slashes that are no paths."""
    monkeypatch.chdir("/")
    assert shown_path("/home/add.py") == "/home/add.py"
    assert with_shown_paths("/home/add.py:3:1: a // b") == "/home/add.py:3:1: a // b"
