"""The puzzles: each as it is given fails its check with a message that helps, and its solution passes."""

import ast
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.docs.documents import blocks
from tlx_xdsl.runtime.answers import PROGRESS, Verdict, settled
from tlx_xdsl.runtime.simulate import ptx_stage

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
    "11_ranks": ("ranks", "reads byte 64 of 'slots of rank 0' in global memory, and nothing orders it after"),
    "12_lifetimes": ("lifetimes", "writes 'raw[0]', and nothing orders it after the TMA store"),
    "13_faster": ("faster", "cycles, the kernel as it was given takes 61,000, and two thirds are wanted: does a load"),
    "14_tensix": ("tensix", "the blocks of 'c_cb' are never popped: no thread waits for them"),
    "15_timeline": ("answers", "still to answer: cycles, busy, line, gain"),
}
"""By file, the kernel and what the check says of it as it is given."""

NEED_TRITON = {"13_faster"}


def puzzles(names):
    """The puzzles as parameters of a test, with the marks of those that are timed from stock Triton's PTX."""
    return [pytest.param(name, marks=pytest.mark.backend if name in NEED_TRITON else ()) for name in names]


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


@pytest.mark.parametrize("name", puzzles(PUZZLES))
def test_a_puzzle_as_it_is_given_says_what_is_wrong(name):
    kernel, said = PUZZLES[name]
    found = verdict(name)
    assert not found
    assert said in str(found)
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    # Lines are those of the file.
    for line, column, shown in re.findall(rf"^{name}\.py:(\d+):(\d+): error: .*\n(.*)$", str(found), re.MULTILINE):
        assert text[int(line) - 1].strip() == shown.strip()
        assert text[int(line) - 1][int(column) - 1] != " "
    assert any(f"def {kernel}(" in line or f"{kernel} = " in line for line in text)


@pytest.mark.parametrize("name", puzzles(PUZZLES))
def test_a_solution_is_right(name, solutions):
    kernel, _ = PUZZLES[name]
    found = verdict(name, **{kernel: getattr(solutions, kernel)})
    assert found, str(found)


@pytest.mark.parametrize("name", [name for name in PUZZLES if name != "15_timeline"])
def test_a_solution_has_the_parameters_of_the_puzzle(name, solutions):
    kernel, _ = PUZZLES[name]
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    (given,) = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == kernel]
    solved = inspect.signature(getattr(solutions, kernel).fn)
    assert [each.arg for each in given.args.args] == list(solved.parameters)


def as_a_script(path):
    where = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(path)], env={**os.environ, "PYTHONPATH": where}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_a_puzzle_is_a_script_with_status_1_until_it_is_solved(tmp_path):
    for name in ("01_add", "02_softmax"):
        (tmp_path / f"{name}.py").write_text((FOLDER / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
    puzzle = tmp_path / "01_add.py"
    given = as_a_script(puzzle)
    assert given.returncode == 1, given.stderr
    assert given.stdout.startswith("01_add.py:45:17: error: load out of bounds")
    assert given.stdout.endswith("\n0 of 2 puzzles solved; next: 01_add\n")
    assert not given.stderr
    assert not (tmp_path / PROGRESS).exists()
    text = puzzle.read_text(encoding="utf-8")
    for old, new in (
        ("(x + at)", "(x + at, mask=at < n)"),
        ("(y + at)", "(y + at, mask=at < n)"),
        ("total)", "total, mask=at < n)"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    puzzle.write_text(text, encoding="utf-8")
    solved = as_a_script(puzzle)
    assert solved.returncode == 0, solved.stderr
    assert solved.stdout.startswith("right: in 3 orders")
    assert solved.stdout.endswith("\n1 of 2 puzzles solved; next: 02_softmax\n")
    assert json.loads((tmp_path / PROGRESS).read_text(encoding="utf-8")) == {"solved": ["01_add"]}


def test_progress_that_was_changed_by_hand_is_begun_anew(tmp_path, monkeypatch, capsys):
    puzzle = tmp_path / "01_add.py"
    puzzle.write_text("", encoding="utf-8")
    (tmp_path / PROGRESS).write_text("[]", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", [str(puzzle)])
    with pytest.raises(SystemExit) as ended:
        settled(Verdict(True, "right"), str(puzzle))
    assert ended.value.code == 0
    assert capsys.readouterr().out == "right\n1 of 1 puzzles solved\n"


def test_marimo_runs_a_puzzle_when_it_is_opened():
    """The default of marimo is to wait, and it ignores a setting in the header of a notebook."""
    manager = pytest.importorskip("marimo._config.manager")
    found = manager.get_default_config_manager(current_path=str(FOLDER / "01_add.py")).get_config()
    assert found["runtime"]["auto_instantiate"]


def changed(solutions, tmp_path, kernel, *changes):
    """A solution with something else in place of a part of its text."""
    text = inspect.getsource(getattr(solutions, kernel).fn)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return written(text, tmp_path, kernel)


def written(text, tmp_path, kernel):
    """The kernel of a text."""
    path = tmp_path / f"{kernel}_changed.py"
    names = (
        "import tlx_xdsl",
        *(f"import tlx_xdsl.language{name}" for name in (" as tl", ".tlx as tlx", ".ttl as ttl")),
    )
    path.write_text("\n".join([*names, "\n", text]), encoding="utf-8")
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
        ("11_ranks", "0, world)", "0, 1)", "nothing orders it after the default task of program (0, 0, 0) of rank"),
        ("11_ranks", "0, world)", "0, world + 1)", "deadlock"),
        (
            "12_lifetimes",
            "        tlx.async_descriptor_store_wait(0)",
            "        tlx.async_descriptor_store_wait(1)",
            "it is over after tlx.async_descriptor_store_wait() of its task",
        ),
        ("13_faster", "                tlx.barrier_wait(empty[slot], phase ^ 1)\n", "", "error: "),
        ("14_tensix", "c_cb.wait()", "a_cb.wait()", "error: "),
    ],
)
def test_another_mistake_is_found(name, old, new, said, solutions, tmp_path):
    kernel, _ = PUZZLES[name]
    found = verdict(name, **{kernel: changed(solutions, tmp_path, kernel, (old, new))})
    assert not found
    assert said in str(found)


def test_a_ring_whose_phases_do_not_count_its_rounds_is_found(solutions, tmp_path):
    """The slot of puzzle 13 alone is not enough."""
    text = inspect.getsource(solutions.faster.fn).replace("(k // STAGES) & 1", "k & 1")
    found = verdict("13_faster", faster=written(text, tmp_path, "faster"))
    assert not found
    assert "its first phase was not complete" in str(found)


def test_wrong_answers_about_a_timeline_are_named():
    found = verdict("15_timeline", answers={"cycles": 19_000, "busy": 90, "line": 71, "gain": None})
    assert not found
    busy, line, left = str(found).splitlines()
    assert busy.startswith("busy: 90 is not it; look")
    assert line.startswith("line: 71 is not it; look")
    assert left == "still to answer: gain"


def test_a_solution_is_not_timed_without_triton(solutions, monkeypatch):
    monkeypatch.setattr(ptx_stage, "installed_triton_version", lambda: None)
    found = verdict("13_faster", faster=solutions.faster)
    assert not found
    assert str(found) == (
        "right, and how fast can't be said: the stage 'ptx' needs stock Triton: install tlx-xdsl[nvidia]"
    )


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
    """Run it as Python in a browser would (Pyodide)."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", AS_IN_A_BROWSER, str(FOLDER)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("right: "), done.stderr
