"""The package where there is no POSIX, or no Linux: this Python without what they have."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from release.packages import first_kernel
from tests.unit.volume import is_full
from tlx_xdsl.backend.errors import BackendError
from tlx_xdsl.backend.worker_process import WorkerProcess
from tlx_xdsl.runtime.driver.cache import cache_folder
from tlx_xdsl.ttl.metalium import build

ROOT = Path(__file__).parents[3]


def on(system, *arguments, folder):
    environment = {**os.environ, "TLX_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.unit.systems.other_system", system, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "tile_copy.py").write_text(first_kernel(), encoding="utf-8")
    return "tile_copy.py:tile_copy"


@pytest.mark.quick
def test_every_module_is_imported_without_posix(tmp_path):
    done = on("win32", "import", folder=tmp_path)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


RUN = (
    "--grid", "4", "--arg", "src_desc=randn[256,64]", "--arg", "dst_desc=nan[256,64]", "--check", "dst_desc=src_desc",
)  # fmt: skip


@pytest.mark.parametrize("system", ["win32", *(["darwin"] if is_full() else [])])
def test_the_readme_s_kernel_runs(system, kernel, tmp_path):
    done = on(system, "run", kernel, *RUN, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "largest error 0.0e+00" in done.stdout


def test_the_readme_s_kernel_becomes_text_and_no_binary(kernel, tmp_path):
    done = on("win32", "compile", kernel, "-q", "-o", "build", folder=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(r"warning: not written: ptx, cubin, json: .* \(Linux only\)\n", done.stderr)
    assert "ttng.async_tma_copy_global_to_local" in (tmp_path / "build" / "tile_copy.ttgir").read_text()
    # What is kept lies where it was asked for.
    assert any((tmp_path / "cache").iterdir())


def test_a_triton_without_posix_is_refused(monkeypatch):
    monkeypatch.delattr(os, "killpg")
    with pytest.raises(BackendError, match="processes that only POSIX has: use Linux, or WSL"):
        WorkerProcess()


@pytest.mark.parametrize(
    ("system", "environment", "where"),
    [
        ("linux", {}, "/home/u/.cache/tlx_xdsl"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/tlx_xdsl"),
        ("darwin", {}, "/home/u/Library/Caches/tlx_xdsl"),
        ("win32", {}, "/home/u/AppData/Local/tlx_xdsl/cache"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/tlx_xdsl/cache"),
        ("win32", {"TLX_CACHE_DIR": "/chosen"}, "/chosen"),
    ],
)
def test_everything_is_kept_where_the_system_has_such_files(monkeypatch, system, environment, where):
    for name in ("TLX_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/u", **environment}.items():
        monkeypatch.setenv(name, value)
    made = []
    monkeypatch.setattr(Path, "mkdir", lambda self, **_: made.append(self))
    monkeypatch.setattr(sys, "platform", system)
    assert cache_folder().as_posix() == where
    build._folder()
    assert [each.as_posix() for each in made] == [f"{where}/metalium"]
