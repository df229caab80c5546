"""Objects on disk: whole or absent, whoever writes them, and no error where nothing can be written."""

from __future__ import annotations

import errno
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tlx_xdsl.runtime.driver import cache

KEY = "ab" + "0" * 62


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache._Said, "warned", False)
    return tmp_path / "cache"


def test_what_was_stored_is_found():
    assert cache.load(KEY) is None
    assert cache.store(KEY, b"body")
    assert cache.load(KEY) == b"body"
    assert cache.store(KEY, b"other")
    assert cache.load(KEY) == b"other"
    assert [each.name for each in cache.path_of(KEY).parent.iterdir()] == [f"{KEY[2:]}.bin"]


@pytest.mark.parametrize(
    "damage",
    [lambda all: all[:-1], lambda all: all[:10], lambda all: b"", lambda all: all[:-1] + b"?", lambda all: b"X" + all],
    ids=["cut", "cut in its mark", "empty", "changed", "shifted"],
)
def test_what_is_damaged_is_absent(damage):
    cache.store(KEY, b"the body of an object")
    path = cache.path_of(KEY)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load(KEY) is None
    assert cache.store(KEY, b"again")
    assert cache.load(KEY) == b"again"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_nothing_is_one_warning(monkeypatch, number: int):
    def fails(*_, **__):
        raise OSError(number, "the reason")

    monkeypatch.setattr(cache.os, "replace", fails)
    with pytest.warns(cache.CacheWarning) as caught:
        assert not cache.store(KEY, b"body")
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert "the reason; TLX_CACHE_DIR names another folder" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cache.store(KEY, b"body")
    # Nothing half is left.
    assert list(cache.path_of(KEY).parent.iterdir()) == []


def test_a_folder_that_is_a_file(folder: Path):
    folder.write_text("")
    with pytest.warns(cache.CacheWarning, match="compiled kernels are not kept"):
        assert not cache.store(KEY, b"body")
    assert cache.load(KEY) is None


def test_an_entry_that_can_not_be_replaced_stays(monkeypatch):
    cache.store(KEY, b"body")
    monkeypatch.setattr(cache.os, "replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "in use")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cache.store(KEY, b"body")
    assert cache.load(KEY) == b"body"


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, ".cache/tlx_xdsl"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/tlx_xdsl"),
        ("darwin", {}, "Library/Caches/tlx_xdsl"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/tlx_xdsl/cache"),
    ],
)
def test_where_it_is_without_a_choice(monkeypatch, tmp_path, platform, environment, expected):
    for name in ("TLX_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cache.sys, "platform", platform)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.cache_folder() == tmp_path / expected


def test_processes_write_the_same_entry_at_once(folder: Path):
    script = (
        "import sys; from tlx_xdsl.runtime.driver import cache\n"
        "for _ in range(200):\n"
        "    cache.store(sys.argv[1], bytes(10_000))\n"
        "    assert cache.load(sys.argv[1]) == bytes(10_000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, KEY]) for _ in range(3)]
    assert [each.wait(timeout=60) for each in running] == [0, 0, 0]
    assert len(list(cache.path_of(KEY).parent.iterdir())) == 1
