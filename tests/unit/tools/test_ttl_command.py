"""`tlx ttl`: C++ written, kernels run on each machine, and checked in many schedules."""

import json
import shutil

import numpy as np
import pytest

from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.runtime import MACHINES

KERNEL = """\
import ttl
import ttnn


@ttl.kernel(grid=(1, 1))
def scale(a: ttnn.Tensor, out: ttnn.Tensor):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for row in range(2):
            with a_cb.reserve() as x:
                ttl.copy(a[row, 0], x)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a_cb.wait() as x, out_cb.reserve() as o:
                o.store(x * 3.0)

    @ttl.datamovement()
    def write():
        for row in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[row, 0])
"""
ARGUMENTS = ["--arg", "a=randn[64,32]", "--arg", "out=nan[64,32]"]


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "scale.py"
    path.write_text(KERNEL)
    return str(path)


@pytest.mark.parametrize("machine", MACHINES)
def test_run(kernel, machine, capsys, tmp_path):
    if machine == "cpp" and shutil.which("g++") is None:
        pytest.skip("needs g++")
    saved = tmp_path / "out.npy"
    arguments = ["ttl", "run", f"{kernel}:scale", *ARGUMENTS, "--machine", machine, "--check", "out=a*3"]
    assert main([*arguments, "--save", f"out={saved}"]) == 0
    assert "out = a*3: largest error" in capsys.readouterr().out
    assert np.isfinite(np.load(saved)).all()


def test_a_wrong_result_is_an_error(kernel, capsys):
    assert main(["ttl", "run", kernel, *ARGUMENTS, "--check", "out=a*4"]) == 1
    assert "elements differ from a*4" in capsys.readouterr().err


def test_check(kernel, capsys):
    assert main(["ttl", "check", kernel, *ARGUMENTS, "--check", "out=a*3"]) == 0
    assert "'scale': no fault, and one result, in 17 schedules" in capsys.readouterr().out


def test_compile(kernel, capsys, tmp_path):
    folder = tmp_path / "build"
    assert main(["ttl", "compile", kernel, *ARGUMENTS, "-o", str(folder), "--print-after-all"]) == 0
    names = {path.name for path in folder.iterdir()}
    assert {"scale.read.cpp", "scale.compute.cpp", "scale.write.cpp", "scale.json", "scale.00-frontend.mlir"} <= names
    manifest = json.loads((folder / "scale.json").read_text())
    assert [each["name"] for each in manifest["tensors"]] == ["a", "out"]
    assert str(folder / "scale.compute.cpp") in capsys.readouterr().out


def test_the_second_profile(kernel, capsys):
    assert main(["ttl", "compile", kernel, *ARGUMENTS, "-o", "-", "--profile", "2025-12", "--no-lines"]) == 0
    text = capsys.readouterr().out
    assert "compute_kernel_api/" in text
    assert "void MAIN" in text
    assert "#line" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "KERNEL"], "'scale' needs values: --arg a=randn[ROWS,COLUMNS] --arg out=randn[ROWS,COLUMNS]"),
        (["run", "KERNEL", "--arg", "b=randn[2,2]"], "'scale' has no parameter 'b', its parameters are a, out"),
        (["run", "KERNEL:other", *ARGUMENTS], "no kernel 'other' in this file, its kernels are scale"),
        (["run", "KERNEL", "--arg", "a=x", "--arg", "out=nan[64,32]"], "--arg a: expected"),
        (["run", "KERNEL", *ARGUMENTS, "--check", "c=a"], "there is no tensor 'c', the tensors are a, out"),
        (
            ["run", "KERNEL", "--arg", "a=randn[64]", "--arg", "out=nan[64,32]"],
            "positive integers (..., rows, columns)",
        ),
        (["run", "nothing.py", *ARGUMENTS], "no such file"),
    ],
)
def test_wrong_command_lines(kernel, capsys, arguments, message):
    assert main(["ttl", *(each.replace("KERNEL", kernel) for each in arguments)]) == 1
    assert message in capsys.readouterr().err


def test_ttl_and_ttnn_are_gone_after_reading(kernel):
    import sys

    assert main(["ttl", "run", kernel, *ARGUMENTS]) == 0
    assert "ttnn" not in sys.modules
