"""The way into command lines: what is interrupted, and what fails, is one line."""

# covers: tlx run, tlx addresses

import subprocess
import sys

import numpy as np
import pytest

from tlx_xdsl.errors import InputError, InputTypeError, internal_error
from tlx_xdsl.tools.entry import exit_status
from tlx_xdsl.tools.output import write_file
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.quick


def failing(error):
    def run():
        raise error

    return exit_status(lambda: run)


@pytest.mark.parametrize("error", [InputError("wrong value"), InputTypeError("wrong value"), OSError("wrong value")])
def test_errors_of_the_input(error, capsys):
    assert failing(error) == 1
    assert capsys.readouterr().err == "error: wrong value\n"


@pytest.mark.parametrize("error", [ValueError("zip() argument 2 is longer"), TypeError("no"), KeyError("x")])
def test_other_errors_are_ours(error, capsys):
    assert failing(error) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: internal error: {type(error).__name__}: ")
    assert "note: this is a defect of tlx_xdsl at " in said


def test_no_memory_is_no_defect(capsys):
    assert failing(MemoryError("Unable to allocate 745. GiB")) == 1
    assert capsys.readouterr().err == "error: out of memory: Unable to allocate 745. GiB\n"


def test_an_interrupt_while_a_command_is_imported():
    script = """
import os, signal, sys
from tlx_xdsl.tools.entry import exit_status

def load():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        print("an import has caught it")
    return lambda: 0

sys.exit(exit_status(load))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("module", ["tlx", "tlx_opt"])
def test_what_is_imported_before_the_interrupt_is_watched_for(module):
    script = f"import sys, tlx_xdsl.tools.{module}; print(*{{'xdsl', 'numpy'}} & {{*sys.modules}})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "new" / "kernel.ptx"
    write_file(path, "old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write_file(path, b"new")
    assert [each.name for each in path.parent.iterdir()] == ["kernel.ptx"]
    assert path.read_text() == "old"


KERNEL = """
import tlx_xdsl
import tlx_xdsl.language as tl

@tlx_xdsl.jit
def copy(x, y, größe):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    tl.store(y + at, tl.load(x + at, mask=at < größe), mask=at < größe)

TLX_COMPILE = {"copy": {"signature": {"x": "*fp32:16", "y": "*fp32:16", "größe": "i32"}}}
"""


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL, encoding="utf-8")
    return f"{path}:copy"


def test_a_picture_of_an_array_that_no_program_touches(kernel, tmp_path, capsys):
    svg = tmp_path / "b.svg"
    assert main(["addresses", kernel, "--grid", "4", "--arg", "größe=0", "--shape", "y=512", "--svg", str(svg)]) == 0
    assert svg.read_text().startswith("<svg")


def test_text_with_a_name_that_is_not_ascii_is_read_again(kernel, tmp_path, capsys):
    assert main(["compile", kernel, "--emit", "ttir,ttgir", "--triton-version", "3.9", "-q", "-o", str(tmp_path)]) == 0
    for suffix in ("ttir", "ttgir"):
        arguments = ["--arg", "x=ones[128]", "--arg", "y=zeros[128]", "--arg", "grC3B6C39Fe=5"]
        assert (
            main(["run", str(tmp_path / f"copy.{suffix}"), "--grid", "1", *arguments, "--check", "y=np.cumsum(x)<6"])
            == 0
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "1000000000"], "the grid has 1,000,000,000 programs, and the interpreter runs at most 16,777,216"),
        (["--grid", "9**9**9"], "a number has at most 4096 bits"),
        (["--grid", "2**60"], "each from 0 to 2,147,483,647, found 1152921504606846976"),
        (["--grid", "1", "--save", "y=no/such/folder/f.npy"], "--save: there is no folder 'no/such/folder'"),
        (["--grid", "1", "--arg", "x=randn[99999999999999]"], "out of memory"),
    ],
)
def test_what_is_too_much(kernel, arguments, message, capsys):
    given = ["--arg", "x=ones[128]", "--arg", "y=zeros[128]", "--arg", "größe=5"]
    assert main(["run", kernel, *given, *arguments]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert "internal" not in said


def test_streams_that_the_caller_has_closed(tmp_path):
    """Files that a command opens next would otherwise get the streams' numbers."""
    picture = tmp_path / "addresses.svg"
    kernel = tmp_path / "kernel.mlir"
    kernel.write_text("tt.func public @f(%y: !tt.ptr<i32>, %x: i32) {\n tt.store %y, %x : !tt.ptr<i32>\n tt.return\n}")
    command = f"addresses {kernel} --grid 1 --shape y=4 --arg x=0 --svg {picture}"
    shell = f"{sys.executable} -m tlx_xdsl.tools.tlx {command} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], check=False).returncode == 0
    assert picture.read_text().rstrip().endswith("</svg>")


def test_what_fails_beside_arrays_is_an_internal_error():
    """Arrays have no one answer to the question whether they are equal to something."""

    def combined(*parts):
        raise ValueError(f"{len(parts)} shapes")

    with pytest.raises(ValueError, match="2 shapes") as found:
        combined(np.zeros(2), np.zeros(3))
    assert internal_error(found.value).message == "internal error: ValueError: 2 shapes"
