"""Reproducers: what fails in each step fails in the script, without the files that it was written from."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import subprocess
import sys
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver import reproducible
from tlx_xdsl.runtime.repro import load_array
from tlx_xdsl.runtime.repro.arrays import NoPython, Values
from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[4]
KERNELS = '''"""Kernels that fail, each in another step."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from beside import twice


@tlx_xdsl.jit
def front(x):
    tl.store(x, twice(undefined_name))


@tlx_xdsl.jit
def budget(x):
    buffers = tlx.local_alloc((8192,), tl.float32, 16)
    tlx.local_store(buffers[0], tl.zeros((8192,), tl.float32))
    tl.store(x + tl.arange(0, 8192), tlx.local_load(buffers[0]))


@tlx_xdsl.jit
def assembly(x):
    v = tl.inline_asm_elementwise("mov.b32 $0, no;", "=r,r", [tl.load(x).to(tl.int32)], tl.int32, is_pure=True, pack=1)
    tl.store(x, v.to(tl.float32))


@tlx_xdsl.jit
def bounds(x, scale):
    at = tl.program_id(0) * 8 + tl.arange(0, 8)
    tl.store(x + at, twice(tl.load(x + at)) * scale)


@tlx_xdsl.jit
def tile(desc):
    buffer = tlx.local_alloc((8, 16), tl.bfloat16, 1)
    tlx.local_store(buffer[0], tl.full((8, 16), 1.0, tl.bfloat16))
    tlx.async_descriptor_store(desc, buffer[0], [0, 0])


TLX_COMPILE = {name: {"signature": {"x": "*fp32"}} for name in ("front", "budget", "assembly")}
'''
BESIDE = """import tlx_xdsl


@tlx_xdsl.jit
def twice(x):
    return x + x
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with kernels, which is the current one."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "beside.py").write_text(BESIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(reproducible.VARIABLE, raising=False)
    # The files of another test have the same names.
    for name in ("kernels", "beside"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    for name in ("kernels", "beside"):
        sys.modules.pop(name, None)


def reproduced(folder, name="repro"):
    """The error of a reproducer, where the kernels are no more."""
    for file in ("kernels.py", "beside.py"):
        (folder / file).unlink(missing_ok=True)
    sys.modules.pop("beside", None)
    with pytest.raises(CompilationError) as caught:
        runpy.run_path(str(folder / name / "repro.py"))["reproduce"]()
    return first_line(str(caught.value))


def first_line(text):
    """The line of an error, without the folder of the file."""
    return text.splitlines()[0].rsplit("/", 1)[-1]


@pytest.mark.parametrize(
    ("kernel", "step", "message"),
    [
        ("front", "frontend", "kernels.py:11:23: error: name 'undefined_name' is not defined"),
        ("budget", "passes", "kernels.py:16:15: error: 'budget' needs 524,288 B of shared memory, sm_90a has 232,448"),
        pytest.param(
            "assembly", "Triton", "kernels.py:23:9: error: ptxas: Arguments mismatch for instruction 'mov'",
            marks=pytest.mark.backend,
        ),
    ],
)  # fmt: skip
def test_a_compile_that_fails_fails_again(folder, capsys, kernel, step, message):
    assert main(["repro", f"kernels.py:{kernel}"]) == 0
    said = capsys.readouterr().out
    assert first_line(said) == message
    assert said.splitlines()[-1] == f"reproducer of the step '{step}': python repro/repro.py"
    assert reproduced(folder) == message
    report = json.loads((folder / "repro" / "report.json").read_text())
    assert (report["step"], report["kernel"]) == (step, kernel)
    assert {"xdsl", "numpy", "Python"} <= report["versions"].keys()


@pytest.mark.parametrize("name", ["it's {odd} \\back", 'a "{0!r}" ' + 3 * '"' + "$x {"])
def test_any_name_of_a_file_will_do(folder, capsys, name):
    (folder / "kernels.py").rename(folder / f"{name}.py")
    assert main(["repro", f"{name}.py:front"]) == 0
    message = first_line(capsys.readouterr().out)
    assert message == f"{name}.py:11:23: error: name 'undefined_name' is not defined"
    assert reproduced(folder) == message


def test_a_run_that_fails_fails_again(folder, capsys):
    np.save("x.npy", np.arange(20, dtype=np.float32))
    command = ["repro", "kernels.py:bounds", "--grid", "3", "--arg", "x=x.npy", "--arg", "scale=0.5", "-o", "bug"]
    assert main(command) == 0
    message = first_line(capsys.readouterr().out)
    assert message.startswith("kernels.py:30:28: error: load out of bounds")
    assert reproduced(folder, "bug") == message
    stored = load_array(folder / "bug" / "arguments" / "x.npy", "fp32")
    assert np.array_equal(stored, np.arange(20, dtype=np.float32))


def test_descriptors_and_narrow_types_are_arguments(folder, capsys):
    command = ["repro", "kernels.py:tile", "--grid", "1", "--arg", "desc=desc(zeros:bf16[8,16], [8,16])"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "'interpreter'" in said
    assert reproduced(folder) == first_line(said)


def test_the_script_is_a_program_of_its_own(folder):
    assert main(["repro", "kernels.py:front"]) == 0
    for file in ("kernels.py", "beside.py"):
        (folder / file).unlink()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = folder / "repro" / "repro.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, first_line(done.stderr)) == (
        1, "kernels.py:11:23: error: name 'undefined_name' is not defined"
    )  # fmt: skip


def test_where_nothing_fails_that_is_said(folder, capsys):
    command = ["repro", "kernels.py:bounds", "--grid", "2", "--arg", "x=ones:fp32[16]", "--arg", "scale=0.5"]
    assert main(command) == 1
    assert "'bounds' runs and compiles: there is nothing to reproduce" in capsys.readouterr().err
    assert not (folder / "repro").exists()


def test_the_variable_has_failures_written_where_they_happen(folder, monkeypatch):
    """The file has the arrays as they were before the run has changed them."""
    monkeypatch.setenv(reproducible.VARIABLE, "written")
    monkeypatch.syspath_prepend(str(folder))
    kernels = importlib.import_module("kernels")
    x = np.ones(20, np.float32)
    with pytest.raises(CompilationError) as caught:
        kernels.bounds.interpret(3, x, 0.5)
    note = caught.value.notes[-1]
    assert note.startswith("reproducer: python written/bounds-interpreter-")
    (stored,) = (folder / "written").rglob("x.npy")
    assert np.array_equal(load_array(stored, "fp32"), np.ones(20, np.float32))
    with pytest.raises(CompilationError, match="undefined_name"):
        kernels.front.compile({"x": "*fp32"})
    assert {each.name.split("-")[1] for each in (folder / "written").iterdir()} == {"interpreter", "frontend"}


@pytest.mark.backend
def test_a_launch_that_fails_is_written(folder, monkeypatch):
    """The driver's part is played: the script that is written needs a GPU."""
    from triton import knobs
    from triton.runtime.driver import driver

    from tests.unit.runtime.jit.jit_kernels import FakeTensor, add
    from tlx_xdsl.runtime.jit.stand_in_driver import assume_target

    monkeypatch.setenv(reproducible.VARIABLE, "written")
    tensor = FakeTensor(64, 2)
    tensor.device = "cuda:0"

    def launch(*_):
        raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")

    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(folder)
        driver.active.launcher_cls = lambda src, metadata: launch
        driver.active.utils = types.SimpleNamespace(
            load_binary=lambda *_: (None, 2, 32, 0, 1024),
            get_device_properties=lambda device: {"max_shared_mem": 227 * 1024},
        )
        with pytest.raises(RuntimeError, match="illegal memory access") as caught:
            add[lambda at: (at["n"] // 32,)](tensor, tensor, tensor, 128, BLOCK=32)
    (script,) = (folder / "written").rglob("repro.py")
    assert caught.value.__notes__ == [f"reproducer: python {script.relative_to(folder)}"]
    text = script.read_text()
    compile(text, str(script), "exec")
    tensors = ", ".join(["tensor('float16', 128, (64, 2), (2, 1))"] * 3)
    assert f"kernel[(4, 1, 1)](\n        {tensors}, 128, BLOCK=32,\n    )" in text
    assert (script.parent / "source" / "jit_kernels.py").exists()


class TestValues:
    def test_arrays_of_each_type_come_back(self, tmp_path):
        values = Values(tmp_path)
        for dtype in (np.float16, ml_dtypes.bfloat16, np.int64, np.bool_, ml_dtypes.float8_e4m3fn):
            array = np.arange(6).reshape(2, 3).astype(dtype)
            text = values.python("a", array)
            found = eval(text, {"array": lambda file, element: load_array(tmp_path / file, element)})
            assert found.dtype == array.dtype
            assert np.array_equal(found, array)

    def test_a_large_array_is_random_numbers(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tlx_xdsl.runtime.repro.arrays.LARGEST", 16)
        values = Values(tmp_path)
        assert values.python("a", np.zeros((4, 4), np.float32)) == "random_array((4, 4), 'fp32')"
        assert values.notes == ["a: 64 bytes are too many to store: random numbers of seed 0"]

    def test_tuples_and_constants(self, tmp_path):
        values = Values(tmp_path)
        assert values.python("t", (1, (None, 2.5), "text")) == "(1, (None, 2.5), 'text')"
        assert values.python("t", (True,)) == "(True,)"
        with pytest.raises(NoPython, match="'f' is function, which can't be written down"):
            values.python("f", lambda: None)
