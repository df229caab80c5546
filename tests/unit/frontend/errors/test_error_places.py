"""Errors are located in the file as it was written, whatever it looks like, also those that are our own fault."""

import linecache
import re
import textwrap
from pathlib import Path

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.frontend.kernels import load
from tlx_xdsl import CompilationError, jit
from tlx_xdsl.frontend import calls
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.tools.tlx import main

SIGNATURE = {"out": "*i32", "n": "i32"}


def error_of(kernel) -> CompilationError:
    with pytest.raises(CompilationError) as error:
        build_module(kernel.source, SIGNATURE, {})
    return error.value


def excerpt(error: CompilationError) -> tuple[str, str]:
    """The source line and the line of the caret."""
    return tuple(str(error).splitlines()[1:3])


PLACES = {
    "characters, not bytes": '@tlx_xdsl.jit\ndef kernel(out, n):\n    größe = "äöü"; tl.store(out, missing)\n',
    "tabs": "@tlx_xdsl.jit\ndef kernel(out, n):\n\tif n > 0:\n\t\ttl.store(out, missing)\n",
    "a definition that is indented by tabs": (
        "def make():\n\t@tlx_xdsl.jit\n\tdef kernel(out, n):\n\t\ttl.store(out, missing)\n\treturn kernel\n"
        "kernel = make()\n"
    ),
    "text at the margin": (
        "def make():\n    @tlx_xdsl.jit\n    def kernel(out, n):\n"
        '        """What it does\nis said here.\n        """\n# and here\n        tl.store(out, missing)\n'
        "    return kernel\nkernel = make()\n"
    ),
    "a method": "class Kernels:\n    @tlx_xdsl.jit\n    def kernel(out, n):\n        tl.store(out, missing)\n"
    "kernel = Kernels.kernel\n",
    "Windows": "@tlx_xdsl.jit\r\ndef kernel(out, n):\r\n    tl.store(out,\r\n        missing)\r\n",
    "a continued line": "@tlx_xdsl.jit\ndef kernel(out, n):\n    x = n + \\\n        missing\n",
    "one line": "@tlx_xdsl.jit\ndef kernel(out, n): tl.store(out, missing)\n",
    "a decorator and a definition of several lines": (
        "@tlx_xdsl.jit(\n    noinline=True,\n)\ndef kernel(\n    out,\n    n,\n):\n    tl.store(out, missing)\n"
    ),
    "another decorator": (
        "import functools\n\ndef same(fn):\n    @functools.wraps(fn)\n    def wrapper(*args):\n"
        "        return fn(*args)\n    return wrapper\n\n"
        "@tlx_xdsl.jit\n@same\ndef kernel(out, n):\n    tl.store(out, missing)\n"
    ),
}


@pytest.mark.parametrize("source", PLACES.values(), ids=PLACES)
def test_the_place_is_that_of_the_file(tmp_path, source):
    kernel = load(tmp_path, source).kernel
    error = error_of(kernel)
    lines = Path(kernel.source.filename).read_text(encoding="utf-8").split("\n")
    line = next(index for index, text in enumerate(lines, 1) if "missing" in text)
    column = lines[line - 1].index("missing") + 1
    assert (error.location.line, error.location.column) == (line, column)
    shown, caret = excerpt(error)
    assert shown == f"    {lines[line - 1]}"
    # Tabs stay tabs, so that the caret stands under its place however wide they are.
    assert caret == "    " + re.sub(r"[^\t]", " ", lines[line - 1][: column - 1]) + "^"


def test_wide_characters_take_two_columns(tmp_path):
    error = error_of(load(tmp_path, '@tlx_xdsl.jit\ndef kernel(out, n):\n    x = "日本"; missing\n').kernel)
    shown, caret = excerpt(error)
    assert error.location.column == shown.index("missing") - 4 + 1
    assert len(caret) - 1 == shown.index("missing") + 2


def test_long_lines_are_cut_around_the_place(tmp_path):
    numbers = ", ".join(["1"] * 300)
    error = error_of(load(tmp_path, f"@tlx_xdsl.jit\ndef kernel(out, n):\n    x = ({numbers}, missing)\n").kernel)
    shown, caret = excerpt(error)
    assert error.location.column == 3 * 300 + 10
    assert len(shown) < 220
    assert shown[len(caret) - 1 :].startswith("missing")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("kernel = tlx_xdsl.jit(lambda out, n: tl.store(out, n))\n", "made by 'def', found a lambda"),
        ("@tlx_xdsl.jit\nasync def kernel(out, n):\n    pass\n", "'kernel' is an 'async def'"),
        ("exec('@tlx_xdsl.jit\\ndef kernel(out, n):\\n    pass')\n", "the source of 'kernel' is not available"),
    ],
)
def test_what_is_no_definition_is_refused(tmp_path, source, message):
    assert message in error_of(load(tmp_path, source).kernel).message


@pytest.mark.parametrize("text", ["", "x = (\n" * 9, "def other():\n    pass\n" * 9, "# nothing\n" * 9])
def test_a_file_that_has_changed_is_noticed(tmp_path, text):
    kernel = load(tmp_path, "\n@tlx_xdsl.jit\ndef kernel(out, n):\n    tl.store(out, n)\n").kernel
    Path(kernel.source.filename).write_text(text)
    assert re.search("the source of 'kernel' is not (available|here any more)", error_of(kernel).message)


@pytest.mark.parametrize("thing", [5, print, object], ids=repr)
def test_jit_takes_functions(thing):
    with pytest.raises(TypeError, match=r"tlx_xdsl\.jit takes a function made by 'def', found"):
        jit(thing)


# --- our own faults -------------------------------------------------------------------------------------------------

BROKEN = """
@tlx_xdsl.jit
def helper(x):
    if x > 0:
        y = tl.num_programs(0)
    return x

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, helper(
        n))
"""


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A kernel during whose compilation a handler fails."""

    def handler(call):
        raise KeyError("on\npurpose")

    monkeypatch.setitem(calls.HANDLERS, "tl.num_programs", handler)
    return load(tmp_path, BROKEN).kernel


def test_an_unexpected_exception_is_located_at_its_statement(broken):
    error = error_of(broken)
    assert error.message == r"internal error: KeyError: 'on\npurpose'"
    assert (error.location.line, error.location.column) == (9, 9)
    assert isinstance(error.__cause__, KeyError)
    assert error.notes[0].startswith(f"this is a defect of tlx_xdsl at {__file__}:")
    assert error.notes[1].startswith("'helper' is called here: ")


def test_the_command_line_prints_internal_errors_too(broken, tmp_path, capsys):
    arguments = ["--signature", "out=*i32", "--signature", "n=i32", "--emit", "ttir", "-o", str(tmp_path)]
    assert main(["compile", f"{broken.source.filename}:kernel", *arguments]) == 1
    first, source_line, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{broken.source.filename}:9:9: error: internal error: KeyError")
    assert source_line.strip() == "y = tl.num_programs(0)"


def test_a_fault_outside_of_statements_is_located_at_the_kernel(tmp_path, monkeypatch):
    def broken(self, parameter, signature, constexprs):
        raise AssertionError("on purpose")

    monkeypatch.setattr("tlx_xdsl.frontend.arguments.Arguments.add", broken)
    error = error_of(load(tmp_path, "@tlx_xdsl.jit\ndef kernel(out, n):\n    pass\n").kernel)
    assert error.message == "internal error: AssertionError: on purpose"
    assert error.location.line == 6


def test_nesting_without_end_is_no_internal_error(tmp_path):
    terms = " + ".join(["n"] * 900)
    error = error_of(load(tmp_path, f"@tlx_xdsl.jit\ndef kernel(out, n):\n    tl.store(out, {terms})\n").kernel)
    assert error.message == "this is nested too deeply for Python's stack: split it into several statements"
    assert error.location.line == 7


CELL = """    limit = 3

    @tlx_xdsl.jit
    def kernel(out, n):
        größe = "äöü"; tl.store(out, missing)
"""


def in_a_cell(notebook: Path, saved: str):
    """A kernel as a cell of a notebook defines it while marimo edits the notebook."""
    notebook.write_text(saved, encoding="utf-8")
    file, text = str(notebook.parent / "marimo_1" / "__marimo__cell_Hbol_.py"), textwrap.dedent(CELL)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    defined = {"__file__": str(notebook), "tlx_xdsl": tlx_xdsl, "tl": tl}
    exec(compile(text, file, "exec"), defined)
    return defined["kernel"]


def test_the_place_in_a_cell_of_marimo_is_that_of_the_notebook(tmp_path):
    notebook = tmp_path / "notebook.py"
    kernel = in_a_cell(
        notebook, f'"""Of its author."""\n\n@app.cell\ndef _(tl, tlx_xdsl):\n{CELL}    return (kernel,)\n'
    )
    error = error_of(kernel)
    assert (error.location.filename, error.location.line, error.location.column) == (str(notebook), 9, 38)
    line, caret = excerpt(error)
    assert line.strip() == 'größe = "äöü"; tl.store(out, missing)'
    assert line[caret.index("^") :] == "missing)"
    assert kernel.source.place.line == 7


@pytest.mark.parametrize(
    "saved", ["", "def kernel(): ...\ndef kernel(): ...\n"], ids=["not yet saved", "two of a name"]
)
def test_a_cell_that_the_notebook_does_not_hold_has_its_own_lines(tmp_path, saved):
    kernel = in_a_cell(tmp_path / "notebook.py", saved)
    error = error_of(kernel)
    assert (error.location.line, error.location.column) == (5, 34)
    assert "__marimo__cell_Hbol_.py" in error.location.filename
