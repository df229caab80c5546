"""The puzzles: each as it is given fails its check with a message that helps, and its solution passes."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.docs.documents import blocks

pytest.importorskip("marimo", reason="the puzzles are marimo notebooks")

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "notebooks" / "puzzles"
PUZZLES = {
    "01_add": ("add", "load out of bounds"),
    "02_softmax": ("softmax", "y[0, 0] is 537.275, expected 1.5808e-41. Wrong are"),
    "03_matmul": ("matmul", "c[0, 0] is 2.45626, expected 3.61695. Wrong are 1023 of 1024 elements."),
    "04_pipelined": ("pipelined", "reads 'ring[0]', and nothing orders it after the cp.async"),
    "05_specialised": ("specialised", "deadlock: the default task waits at 'empty[0]'"),
    "06_deadlock": ("deadlock", "deadlock: the default task waits at 'empty[0]' for parity 0"),
    "07_race": ("race", "without a proxy fence"),
    "08_aliasing": ("aliased", "allocates 262,152 B of shared memory, sm_90a has 232,448"),
    "09_cluster": ("cluster", "reads 'other[0]', and nothing orders it after the remote store"),
    "10_attention": ("attention", "out[1, 0] is "),
}
"""By file, the kernel and what the check says of it as it is given."""


def load(path):
    spec = importlib.util.spec_from_file_location(f"puzzle_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def solutions():
    return load(FOLDER / "solutions.py")


def verdict(name, **definitions):
    _, defined = load(FOLDER / f"{name}.py").app.run(defs=definitions)
    return defined["verdict"]


def test_all_puzzles_are_tested():
    assert sorted(PUZZLES) == sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))


@pytest.mark.parametrize("name", PUZZLES)
def test_a_puzzle_as_it_is_given_says_what_is_wrong(name):
    kernel, said = PUZZLES[name]
    found = verdict(name)
    assert not found
    assert said in str(found)
    # Lines are those of the cell.
    assert "marimo" not in str(found)
    assert f"def {kernel}(" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PUZZLES)
def test_a_solution_is_right(name, solutions):
    kernel, _ = PUZZLES[name]
    found = verdict(name, **{kernel: getattr(solutions, kernel)})
    assert found, str(found)


@pytest.mark.parametrize("name", PUZZLES)
def test_a_solution_has_the_parameters_of_the_puzzle(name, solutions):
    kernel, _ = PUZZLES[name]
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    (given,) = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == kernel]
    solved = inspect.signature(getattr(solutions, kernel).fn)
    assert [each.arg for each in given.args.args] == list(solved.parameters)


def changed(solutions, tmp_path, kernel, *changes):
    """A solution with something else in place of a part of its text."""
    text = inspect.getsource(getattr(solutions, kernel).fn)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = tmp_path / f"{kernel}_changed.py"
    imports = "import tlx_xdsl\nimport tlx_xdsl.language as tl\nimport tlx_xdsl.language.tlx as tlx\n\n\n"
    path.write_text(imports + text, encoding="utf-8")
    return getattr(load(path), kernel)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("01_add", "tl.store(z + at, total, mask=inside)", "tl.store(z + at, total)", "store out of bounds"),
        ("02_softmax", ', other=float("-inf")', "", "y[1, 64] is 0, expected "),
        ("03_matmul", "tl.dot(a_tile, b_tile, acc)", "tl.dot(a_tile, b_tile)", "Wrong are"),
        ("04_pipelined", "wait_group(STAGES - 2)", "wait_group(STAGES - 1)", "nothing orders it after the cp.async"),
        ("05_specialised", "tlx.barrier_arrive(empty[0])", "pass", "no line arrives at 'empty'"),
        ("06_deadlock", "tlx.barrier_wait(empty[stage], phase ^ 1)", "pass", "error: "),
        ("07_race", "                tlx.async_descriptor_store_wait(0)\n", "", "TMA store"),
        ("08_aliasing", "reuse_group_type.distinct", "reuse_group_type.shared", "error: "),
        ("09_cluster", "tlx.barrier_expect_bytes(there[0], 4)", "tlx.barrier_expect_bytes(there[0], 8)", "deadlock"),
        ("10_attention", "acc * rescale[:, None])", "acc)", "out[1, 0] is "),
    ],
)
def test_another_mistake_is_found(name, old, new, said, solutions, tmp_path):
    kernel, _ = PUZZLES[name]
    found = verdict(name, **{kernel: changed(solutions, tmp_path, kernel, (old, new))})
    assert not found
    assert said in str(found)


def test_the_page_s_own_exercise(tmp_path, capsys):
    (program,), (shown,) = blocks("docs/puzzles.md", "python"), blocks("docs/puzzles.md", "text")
    path = tmp_path / "exercise.py"
    path.write_text(program, encoding="utf-8")
    load(path)
    assert capsys.readouterr().out == shown


def test_the_page_lists_the_puzzles_in_their_order():
    page = (ROOT / "docs" / "puzzles.md").read_text(encoding="utf-8")
    assert re.findall(r"\(notebooks/puzzles/(\w+)\.md\)", page) == list(PUZZLES)


AS_IN_A_BROWSER = """
import os, sys, threading, time

def refuse(*_): raise RuntimeError("can't start new thread")

threading.Thread.start = refuse
del time.thread_time, os.fork
for name in ("resource", "triton"):
    sys.modules[name] = None
sys.platform = "emscripten"
sys.path.insert(0, sys.argv[1])
import numpy as np
import solutions
import tlx_xdsl
from tlx_xdsl.runtime.answers import judged

tile = tlx_xdsl.TensorDescriptor.from_tensor
src = np.random.default_rng(0).standard_normal((5 * 16, 16)).astype(np.float16)
dst = np.empty_like(src)
expected = {"dst": (dst, src + 1)}
print(judged(solutions.race, 1, tile(src, [16, 16]), tile(dst, [16, 16]), 5, TILE=16, STAGES=2, expected=expected))
"""


def test_a_kernel_runs_where_there_are_no_threads_no_processes_and_no_clock_of_a_thread():
    """As for Python in a browser (Pyodide)."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", AS_IN_A_BROWSER, str(FOLDER)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("right: "), done.stderr
