"""The number of workers, and what a log says: each failure at once, and all of them at its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit import conftest

ROOT = Path(__file__).parents[2]


def test_every_core_has_a_worker(monkeypatch):
    monkeypatch.setattr(conftest, "missing_for_gpu", lambda: "no GPU")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5, 6}, raising=False)
    assert conftest.pytest_xdist_auto_num_workers() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(128)))
    assert conftest.pytest_xdist_auto_num_workers() == conftest.MOST_WORKERS


def test_a_gpu_is_not_shared(monkeypatch):
    monkeypatch.setattr(conftest, "missing_for_gpu", lambda: None)
    assert conftest.pytest_xdist_auto_num_workers() == 0


INNER = """
import warnings

import pytest

def test_one():
    pytest.skip("no GPU")

def test_two():
    pytest.skip("no GPU")

@pytest.mark.skip(reason="no torch")
def test_three():
    pass

def test_four():
    warnings.warn("Value 64 exceeds the maximum bitwidth (32) for type 'int32'. This may")
    assert 1 == 2
"""


@pytest.fixture(scope="module")
def log(pytestconfig, tmp_path_factory) -> list[str]:
    """The lines that a run with a worker prints."""
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    tmp_path = tmp_path_factory.mktemp("inner")
    path = tmp_path / "test_inner.py"
    path.write_text(INNER)
    options = ["-c", pytestconfig.inipath, "--rootdir", tmp_path, "-p", "tests.unit.conftest", "-p", "no:cacheprovider"]
    options += ["-n", "1", "--dist", "loadfile"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, path],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stderr
    return done.stdout.splitlines()


def test_a_failure_is_named_at_once(log):
    """Before the headings of the summary, which a run that is cut off does not have."""
    (line,) = [number for number, line in enumerate(log) if line.startswith("failed now: ")]
    assert "test_inner.py::test_four (call): assert 1 == 2" in log[line]
    assert line < next(number for number, each in enumerate(log) if "= FAILURES =" in each)


def test_a_log_ends_in_what_failed(log):
    """After the reasons of the skips, with their counts; a warning that is not stock Triton's is shown."""
    lines = log
    skipped = next(number for number, line in enumerate(lines) if " skipped =" in line)
    assert lines[skipped + 1 : skipped + 3] == ["    2 no GPU", "    1 no torch"]
    assert any("UserWarning: Value 64" in line for line in lines[:skipped])
    assert lines[-2].startswith("FAILED ")
    assert "test_inner.py::test_four" in lines[-2]
    assert "1 failed, 3 skipped, 1 warning" in lines[-1]
