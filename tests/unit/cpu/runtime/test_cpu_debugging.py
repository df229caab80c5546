"""The debugger in launches of machine code: it opens at the program that stops, and the launch is done after it."""

import io

import numpy as np
import pytest

import tlx_xdsl.language as tl
from tlx_xdsl.cpu.runtime.build import CpuSpecialization, bufferized_module
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.host.kernel import CpuKernel
from tlx_xdsl.tools.tlx import main


def stopping(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    top = tl.max(value, axis=0)
    if top > 150:
        breakpoint()
    tl.store(y + at, value * 2, mask=at < n)


def checking(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.device_assert(value < 100, "too large")
    tl.store(y + at, value * 2)


def printing(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    if tl.program_id(0) == 2:
        tl.device_print("top", tl.max(value, axis=0))
    tl.store(y + at, value * 2)


@pytest.fixture
def arrays():
    return np.arange(256, dtype=np.float32), np.full(256, np.nan, np.float32)


@pytest.fixture
def commands(monkeypatch):
    """Give the debugger commands; it takes none where nothing stops."""

    def give(*lines):
        stream = io.StringIO("".join(f"{line}\n" for line in lines))
        monkeypatch.setattr("sys.stdin", stream)
        return stream

    return give


def test_a_breakpoint_opens_the_debugger_at_its_program(arrays, commands, capsys):
    x, y = arrays
    commands("print top", "print y[0]", "next", "print value[0]", "quit")
    CpuKernel(stopping)[(4,)](x, y, 256, BLOCK=64)
    said = capsys.readouterr().out
    assert "breakpoint() in program (2, 0, 0)" in said
    assert ": breakpoint()\n" in said
    assert "(tlx) print top\ntop = 191.0\n" in said
    # Arrays are as they were before the launch: the programs before have not run for the debugger.
    assert "(tlx) print y[0]\ny[0] = nan\n" in said
    assert ": tl.store(y + at, value * 2, mask=at < n)\n" in said
    assert "value[0] = 128.0" in said
    # The launch was done after it.
    np.testing.assert_array_equal(y, x * 2)


def test_what_is_changed_in_place_is_changed_once(commands, capsys):
    x = np.arange(256, dtype=np.float32)
    wanted = x * 2
    commands("quit")
    CpuKernel(stopping)[(4,)](x, x, 256, BLOCK=64)
    assert "in program (2, 0, 0)" in capsys.readouterr().out
    np.testing.assert_array_equal(x, wanted)


def test_a_launch_that_comes_to_no_breakpoint_opens_nothing(arrays, commands, capsys):
    x, y = arrays
    stream = commands("quit")
    CpuKernel(stopping)[(4,)](x * 0.1, y, 256, BLOCK=64)
    assert not capsys.readouterr().out
    assert stream.read() == "quit\n"
    np.testing.assert_array_equal(y, x * np.float32(0.1) * 2)


def test_breakpoints_are_off_as_in_python(arrays, commands, capsys, monkeypatch):
    x, y = arrays
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    CpuKernel(stopping)[(4,)](x, y, 256, BLOCK=64)
    assert not capsys.readouterr().out
    np.testing.assert_array_equal(y, x * 2)


def test_a_bound_launch_stops_at_no_breakpoint(arrays, capsys):
    x, y = arrays
    CpuKernel(stopping).bind((4,), x, y, 256, BLOCK=64)()
    assert not capsys.readouterr().out
    np.testing.assert_array_equal(y, x * 2)


def test_a_failed_assertion_opens_the_debugger_where_that_is_asked_for(arrays, commands, capsys):
    x, y = arrays
    commands("print value[36]", "quit")
    with pytest.raises(Fault, match="too large"):
        CpuKernel(checking)[(4,)](x, y, BLOCK=64, debugger=True)
    said = capsys.readouterr().out
    assert "assertion failed: too large in program (1, 0, 0)" in said
    assert "value[36] = 100.0" in said
    # Else it is an error alone, and without `debug` nothing.
    with pytest.raises(Fault, match="too large"):
        CpuKernel(checking)[(4,)](x, y, BLOCK=64, debug=True)
    CpuKernel(checking)[(4,)](x, y, BLOCK=64)
    assert not capsys.readouterr().out


def test_an_access_outside_of_its_array_opens_it_too(arrays, commands, capsys):
    x, _ = arrays
    commands("print at[63]", "quit")
    with pytest.raises(Fault, match="outside of its array"):
        CpuKernel(checking)[(4,)](x * 0.1, np.empty(128, np.float32), BLOCK=64, debugger=True)
    said = capsys.readouterr().out
    assert "in program (2, 0, 0)" in said
    assert "at[63] = 191" in said


def test_a_print_opens_it_where_that_is_asked_for(arrays, commands, capsys):
    x, y = arrays
    commands("print value[0]", "quit")
    CpuKernel(printing)[(4,)](x, y, BLOCK=64, debugger=True)
    said = capsys.readouterr().out
    assert "a print in program (2, 0, 0)" in said
    assert "value[0] = 128.0" in said
    np.testing.assert_array_equal(y, x * 2)
    CpuKernel(printing)[(4,)](x, y, BLOCK=64)
    assert capsys.readouterr().out == "191.0\n"


def test_tensors_of_torch(commands, capsys):
    torch = pytest.importorskip("torch")
    x, y = torch.arange(256, dtype=torch.float32), torch.zeros(256)
    commands("print top", "quit")
    CpuKernel(stopping)[(4,)](x, y, 256, BLOCK=64)
    assert "top = 191.0" in capsys.readouterr().out
    assert torch.equal(y, x * 2)


def test_what_is_compiled_ahead_has_no_breakpoint():
    kernel = CpuKernel(stopping)
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32"}
    without, with_one = (
        str(bufferized_module(kernel.source, CpuSpecialization(signature, {"BLOCK": 64}, breakpoints=each)))
        for each in (False, True)
    )
    assert "breakpoint()" not in without
    assert "breakpoint()" in with_one


def test_a_gpu_has_no_breakpoints_and_the_interpreter_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n@tlx_xdsl.jit\ndef kernel(x):\n"
        "    breakpoint()\n    tl.store(x, tl.load(x) + 1.0)\n    breakpoint()\n\n\n"
        "TLX_COMPILE = {'kernel': {'signature': {'x': '*fp32'}}}\n"
    )
    assert main(["compile", "kernel.py:kernel"]) == 1
    assert "kernel.py:7:5: error: breakpoint() is for launches on the CPU" in capsys.readouterr().err
    launch = ["kernel.py:kernel", "--grid", "1", "--arg", "x=zeros[1]"]
    assert main(["run", *launch, "--check", "x=1"]) == 0
    capsys.readouterr()
    assert main(["debug", *launch, "-c", "continue"]) == 0
    assert "stopped by 1: breakpoint()" in capsys.readouterr().out


def with_arguments(x):
    breakpoint(x)


def test_it_takes_no_arguments():
    with pytest.raises(CompilationError, match=r"breakpoint\(\) takes no arguments"):
        CpuKernel(with_arguments)[(1,)](np.zeros(1, np.float32))
