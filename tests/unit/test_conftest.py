"""The number of workers, the quick tests, and what a log says: each failure at once, seconds, all that failed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import seconds
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
import time
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
    time.sleep(0.2)
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
    """The line stands before the headings of the summary, which a run that is cut off does not have."""
    (line,) = [number for number, line in enumerate(log) if line.startswith("failed now: ")]
    assert "test_inner.py::test_four (call): assert 1 == 2" in log[line]
    assert line < next(number for number, each in enumerate(log) if "= FAILURES =" in each)


def test_a_log_ends_in_what_failed(log):
    """Failures follow the reasons of skips, with their counts; a warning that is not stock Triton's is shown."""
    lines = log
    skipped = next(number for number, line in enumerate(lines) if " skipped =" in line)
    assert lines[skipped + 1 : skipped + 3] == ["    2 no GPU", "    1 no torch"]
    assert any("UserWarning: Value 64" in line for line in lines[:skipped])
    assert lines[-2].startswith("FAILED ")
    assert "test_inner.py::test_four" in lines[-2]
    assert "1 failed, 3 skipped, 1 warning" in lines[-1]


def test_a_log_says_the_seconds_of_each_package(log):
    (at,) = [number for number, line in enumerate(log) if " seconds of the unit tests =" in line]
    found = re.fullmatch(r" *([\d.]+) \(top\)", log[at + 1])
    assert found is not None
    assert 0.2 <= float(found[1]) < 60


def test_seconds_are_those_of_a_package():
    ids = ["tests/unit/ttl/runtime/test_a.py::test[x/y]", "tests/unit/ttl/test_b.py::t", "tests/unit/test_c.py::t"]
    durations = [(nodeid, 1.5) for nodeid in [*ids, "tests/zoo/test_zoo.py::t"]]
    assert seconds.of_pytest(durations) == {"ttl": 3.0, "(top)": 1.5, "zoo": 1.5}
    tests = [{"name": f"tlx_xdsl :: {name}", "elapsed": 2.0} for name in ("nvidia/clusters/a.mlir", "nvidia/b.mlir")]
    assert seconds.of_lit(json.dumps({"tests": tests})) == {"nvidia": 4.0}
    assert list(seconds.table(seconds.of_pytest(durations))) == [
        "    3.0 ttl                 1.5 (top)               1.5 zoo"
    ]


ELSEWHERE = {"torch": "runtime/jit"}
"""Where the tests of a package lie: a folder named torch would hide torch."""
PACKAGES = sorted(path.parent.name for path in (ROOT / "tlx_xdsl").glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_a_quick_test(package: str):
    """`make test-quick` runs it. The heart of a package shows most mistakes, in seconds."""
    folder = ROOT / "tests" / "unit" / ELSEWHERE.get(package, package)
    assert any("mark.quick" in path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py"))


def test_only_quick_files_are_read_for_quick_tests(tmp_path: Path):
    def ignored(text: str, markers: str) -> bool | None:
        path = tmp_path / "test_some.py"
        path.write_text(text)
        return conftest.pytest_ignore_collect(path, SimpleNamespace(option=SimpleNamespace(markexpr=markers)))

    quick = "pytestmark = pytest.mark.quick"
    assert ignored("def test(): ...", "quick") is True
    assert ignored(quick, "quick") is None
    assert ignored("def test(): ...", "") is None
    assert ignored("def test(): ...", "not quick") is None
