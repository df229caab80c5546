"""The playground's side in Python: command lines, passes and scripts on one file, of which a page shows the results.

Pyodide runs it in a worker of the browser. It also runs in CPython, where the tests compare both.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import os
import runpy
import shlex
import sys
import traceback
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILE = "kernel.py"
"""The name of the file that the page edits, in the current folder."""

ABSENT = ("numpy", "ml_dtypes", "torch", "triton", "matplotlib")
"""Packages that a file may import where they are not there, as long as it does not use them."""

TIMELINE = "timeline-example.json"
"""The file that a puzzle reads a timeline from."""

PICTURES = (".svg", ".html")

_IMPORTS = {
    "tlx_xdsl": "import tlx_xdsl",
    "tl": "import tlx_xdsl.language as tl",
    "tlx": "import tlx_xdsl.language.tlx as tlx",
    "ttl": "import tlx_xdsl.language.ttl as ttl",
    "np": "import numpy as np",
}
_POINTED = {"load", "store", "async_load", "peer", "signal", "wait_signal", "make_tensor_descriptor"}
COUNTS = {"STAGES", "NUM_STAGES", "SLOTS", "BUFFERS", "NUM_BUFFERS", "GROUPS"}
_DESCRIBED = {"async_descriptor_load", "async_descriptor_store"}


class Missing(types.ModuleType):
    """A package that is not there: its use is the error, not its import."""

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, which names the package."""
        raise AttributeError(f"No module named '{self.__name__}'", name=name, obj=self)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise as for an attribute: it stands for a function of the package, too."""
        return self.__getattr__("__call__")


def whole(source: str) -> str:
    """A piece of a page as a file of its own: with the usual imports that it uses and does not have.

    >>> whole("tlx_xdsl.jit").splitlines()[0]
    'import tlx_xdsl'
    """
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {
        alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    lines = [line for name, line in _IMPORTS.items() if name in used - bound]
    return "\n".join([*lines, "\n", source]) if lines else source


def kernels(source: str) -> list[tuple[ast.FunctionDef, str]]:
    """The kernels of a file, and the language of each: `tlx` or `ttl`; none of a file that is not Python."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return []
    found: list[tuple[ast.FunctionDef, str]] = []
    for node in body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            text = ast.unparse(decorator)
            if text.startswith(("tlx_xdsl.jit", "tlx_xdsl.autotune", "triton.jit")):
                found.append((node, "tlx"))
            elif text.startswith("ttl.kernel"):
                found.append((node, "ttl"))
    return found


def proposed(source: str) -> str:
    """The command line that the page begins with: `explain` for the last kernel, with types where the file says none.

    They are guessed from the kernel: what it loads and stores is a pointer to fp32; what TMA copies has blocks of the
    buffer's shape and type; another argument is i32. A compile-time argument without a default is 64, or 2 where it
    counts stages. A file without a kernel is run as a script.
    """
    found = [(node, language) for node, language in kernels(source) if not _gives_a_value(node)]
    if not found or found[-1][1] == "ttl" or "mo.md(" in source:
        return f"python {FILE}"
    node, _ = found[-1]
    line = f"tlx explain {FILE}:{node.name}"
    if any(isinstance(each, ast.Name) and each.id == "TLX_COMPILE" for each in ast.walk(ast.parse(source))):
        return line
    pointers, descriptors = _used(node)
    signature, constants = [], []
    defaults = {argument.arg for argument in node.args.args[len(node.args.args) - len(node.args.defaults) :]}
    for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        name, annotation = argument.arg, ast.unparse(argument.annotation) if argument.annotation else ""
        if annotation.endswith("constexpr"):
            constants += [] if name in defaults else [f"{name}={_constant(name)}"]
        elif name in descriptors:
            signature.append(f"{name}={descriptors[name]}")
        else:
            signature.append(f"{name}={'*fp32' if name in pointers else 'i32'}")
    for option, values in (("--signature", signature), ("--constexpr", constants)):
        line += f" {option} {shlex.quote(','.join(values))}" if values else ""
    return line


def _gives_a_value(node: ast.FunctionDef) -> bool:
    """Return whether a function is one that kernels call."""
    return any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(node))


def _constant(name: str) -> int:
    return 2 if name in COUNTS else 64


def _used(node: ast.FunctionDef) -> tuple[set[str], dict[str, str]]:
    """The names that a kernel uses as pointers, and the type of each that it uses as a descriptor."""
    assigned: dict[str, list[ast.expr]] = {}
    pointers: set[str] = set()
    copied: dict[str, str] = {}
    for each in ast.walk(node):
        if isinstance(each, ast.Assign):
            for target in (name for name in each.targets if isinstance(name, ast.Name)):
                assigned.setdefault(target.id, []).append(each.value)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.args:
            names = _first_names(each.args[0])
            if each.func.attr in _POINTED or each.func.attr.startswith("atomic_"):
                pointers |= names
            elif each.func.attr in _DESCRIBED and len(each.args) > 1:
                copied |= {name: next(iter(_first_names(each.args[1])), "") for name in names}
    for name in tuple(pointers):
        pointers.update(*(_first_names(value) for value in assigned.get(name, ())))
    return pointers, {name: _block(assigned.get(buffer, ())) for name, buffer in copied.items()}


def _block(values: Iterable[ast.expr]) -> str:
    """The type of a descriptor whose blocks fill a buffer, by the buffer's `tlx.local_alloc`."""
    for value in values:
        match value:
            case ast.Call(args=[ast.Tuple(elts=sizes), type_, *_]):
                shape = [str(_constant(each.id)) if isinstance(each, ast.Name) else ast.unparse(each) for each in sizes]
                name = type_.attr.replace("float", "fp") if isinstance(type_, ast.Attribute) else "fp16"
                return f"tensordesc<{name}[{', '.join(shape)}]>"
            case _:
                pass
    return "tensordesc<fp16[64, 64]>"


def _first_names(value: ast.expr) -> set[str]:
    """The name that an expression begins with: `x` of the address `x + row * 4 + at`, and of the buffer `x[0]`."""
    while isinstance(value, ast.BinOp | ast.Subscript):
        value = value.left if isinstance(value, ast.BinOp) else value.value
    return {value.id} if isinstance(value, ast.Name) else set()


def set_up() -> str:
    """Enter a folder in which puzzles find what they read of the repository, two folders above; its path as JSON."""
    # Beside this module in the archive of the site; in the repository among the pictures of the pages.
    held = Path(__file__).with_name(TIMELINE)
    held = held if held.is_file() else Path(__file__).parents[1] / "images" / TIMELINE
    images, folder = Path("docs/images"), Path("notebooks/puzzles")
    for each in (images, folder):
        each.mkdir(parents=True, exist_ok=True)
    images.joinpath(TIMELINE).write_bytes(held.read_bytes())
    os.chdir(folder)
    return json.dumps(str(Path.cwd()))


def opened(source: str) -> str:
    """JSON of what the page begins with for a source: the `source` as a whole file, and the `line` to run."""
    with contextlib.suppress(SyntaxError):
        source = whole(source)
    return json.dumps({"source": source, "line": proposed(source)})


def ran(source: str, line: str) -> str:
    """JSON of a command line on a source, `tlx ...`, `tlx-opt ...` or `python kernel.py`.

    It has the `status`, what was printed as `text`, the `pictures` that were written, and in `missing` the package that
    was needed and is not there.
    """
    before, arguments = _written(), shlex.split(line)
    printed, status = io.StringIO(), 0
    _write(source, thin=arguments[:1] != ["python"])
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            status = _command(arguments)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
            printed.write(f"{error.code}\n" if isinstance(error.code, str) else "")
        except Exception as error:  # What a user's script raises is shown, whatever it is.
            status = 1
            own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(FILE)]
            place = f"{FILE}:{own[-1].lineno}: " if own else ""
            said = str(error)
            printed.write(said if ": error: " in said else f"{place}error: {type(error).__name__}: {said}\n")
    text = printed.getvalue()
    missing = next((name for name in ABSENT if f"No module named '{name}'" in text), None)
    pictures = {
        name: Path(name).read_text(encoding="utf-8") for name, stamp in _written().items() if before.get(name) != stamp
    }
    return json.dumps({"status": status, "text": text, "pictures": pictures, "missing": missing})


def passed(source: str, line: str) -> str:
    """JSON of the passes of a command line `tlx explain FILE:KERNEL ...`: a list in `passes`, or `text` of an error.

    Each has its `name` and what it `changed`; where that is something, also how many operations it leaves (`ops`), the
    module after it as `text`, and the `diff` to the module before.
    """
    _write(source, thin=True)
    stages: list[Any] = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = _stages(shlex.split(line)[1:], stages)
    if status:
        text = printed.getvalue()
        missing = next((name for name in ABSENT if f"No module named '{name}'" in text), None)
        return json.dumps({"text": text, "passes": [], "missing": missing})
    from tlx_xdsl.runtime.driver.stages import NOTHING, changes, unified_diff

    rows: list[dict[str, object]] = []
    for before, stage in zip([None, *stages[:-1]], stages, strict=True):
        changed = "" if before is None else changes(before, stage)
        # Most passes change nothing, and to read and to write a module again takes longer than the pass.
        shown: dict[str, object] = {"ops": 0, "text": "", "diff": ""}
        if changed != NOTHING:
            diff = "" if before is None else unified_diff(before, stage)
            shown = {"ops": stage.operations.total(), "text": stage.text, "diff": diff}
        rows.append({"name": stage.name, "changed": changed, **shown})
    return json.dumps({"passes": rows, "text": "", "missing": None})


def _write(source: str, *, thin: bool) -> None:
    Path(FILE).write_text(_without_absent(source, thin=thin), encoding="utf-8")
    # A file of the same length that was written within a second is taken for the same one.
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def _stages(arguments: list[str], stages: list[Any]) -> int:
    """Run the passes that the arguments of `tlx explain` ask for; returns the exit status."""
    from tlx_xdsl.runtime.driver.compilation import compile_text
    from tlx_xdsl.runtime.driver.stages import Stage
    from tlx_xdsl.tools.entry import exit_status
    from tlx_xdsl.tools.launch_line.request import read
    from tlx_xdsl.tools.launch_line.specialization import specialization_of, triton_version
    from tlx_xdsl.tools.tlx import parser

    def load() -> Any:
        parsed = parser(asked="explain").parse_args(arguments)
        request = read(parsed)
        version = triton_version(parsed.triton_version, needs_backend=False)
        return lambda: compile_text(
            request.source, specialization_of(request), triton_version=version, conversion=parsed.conversion,
            verify_each=False, on_stage=lambda name, printed: stages.append(Stage(name, printed)),
        ) and None  # fmt: skip

    return exit_status(load)


def _command(arguments: list[str]) -> int:
    match arguments:
        case ["tlx", *rest]:
            from tlx_xdsl.tools.tlx import main

            return main(rest)
        case ["tlx-opt", *rest]:
            from tlx_xdsl.tools.opt.main import main as opt

            return opt(rest) or 0
        case ["python", file, *rest] if file == FILE:
            sys.argv = [file, *rest]
            _stand_in_for_marimo()
            runpy.run_path(file, run_name="__main__")
            return 0
        case _:
            print(f"error: expected 'tlx ...', 'tlx-opt ...' or 'python {FILE}', found '{' '.join(arguments)}'")
            return 1


def _without_absent(source: str, *, thin: bool) -> str:
    """The source, on the same lines, with stand-ins for what it imports that is not there.

    `thin` also leaves out the statements of the file that use them, for commands that need its kernels alone.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return source
    lines, absent = source.split("\n"), set[str]()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if gone := [(alias, name) for alias in node.names if (name := _absent(node, alias))]:
                absent |= {alias.asname or alias.name for alias, _ in gone}
                kept = [ast.unparse(_only(node, alias)) for alias in node.names if alias not in dict(gone)]
                made = [
                    f"{alias.asname or alias.name} = __import__('{__name__}').Missing('{name}')" for alias, name in gone
                ]
                _replace(lines, node, "; ".join([*kept, *made]))
        elif thin and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            if absent.intersection(each.id for each in names):
                absent |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
                _replace(lines, node, "pass")
    return "\n".join(lines)


def _replace(lines: list[str], node: ast.stmt, text: str) -> None:
    lines[node.lineno - 1 : node.end_lineno] = [text, *[""] * ((node.end_lineno or node.lineno) - node.lineno)]


def _only(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    return ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], node.level)


def _absent(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str | None:
    """The package that an import needs and that is not there; None where it can be imported."""
    name = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
    if name.partition(".")[0] not in (*ABSENT, "tlx_xdsl"):
        return None
    try:
        getattr(importlib.import_module(name), alias.name if isinstance(node, ast.ImportFrom) else "__name__", None)
    except ModuleNotFoundError as error:
        return error.name if error.name in ABSENT else None
    return None


def _written() -> dict[str, int]:
    """The pictures in the folder, with the time at which each was written."""
    return {name: os.stat(name).st_mtime_ns for name in os.listdir() if name.endswith(PICTURES)}


def _stand_in_for_marimo() -> None:
    """Let notebooks run as scripts where marimo is not there: cells one after the other, as they stand in the file."""
    if importlib.util.find_spec("marimo") is not None or "marimo" in sys.modules:
        return
    module = types.ModuleType("marimo")

    class App:
        def __init__(self, **_: Any) -> None:
            self.cells: list[Any] = []

        def cell(self, function: Any = None, **_: Any) -> Any:
            if function is None:
                return self.cell
            self.cells.append(function)
            return function

        def run(self) -> None:
            defined: dict[str, Any] = {}
            for cell in self.cells:
                names = cell.__code__.co_varnames[: cell.__code__.co_argcount]
                results = cell(*(defined[name] for name in names)) or ()
                defined.update(zip(_returned(cell), results, strict=True))

    module.App = App  # type: ignore[attr-defined]
    module.md = lambda _: None  # type: ignore[attr-defined]
    module.running_in_notebook = lambda: False  # type: ignore[attr-defined]
    module.__spec__ = importlib.util.spec_from_loader("marimo", None)
    sys.modules["marimo"] = module


def _returned(cell: Any) -> list[str]:
    """The names that a cell returns, in order."""
    import inspect
    import textwrap

    (function,) = ast.parse(textwrap.dedent(inspect.getsource(cell))).body
    last = function.body[-1]  # type: ignore[attr-defined]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple):
        return []
    return [name.id for name in last.value.elts if isinstance(name, ast.Name)]
