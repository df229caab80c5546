"""Refusals of stock Triton, each of which we refuse, too: `tests/oracle/refusals.py`."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.oracle import loading
from tests.oracle.refusals import HELPERS, PARAMETERS, TABLE, Refused, Taken
from tests.oracle.stock import Stock
from tests.unit.volume import is_full_for_each_version
from tests.versions import NEWEST, why_not_installed
from tlx_xdsl import CompilationError

_CLASSES = ("TritonSemantic.", "CodeGenerator.")

ENTRIES = [
    (f"{file}:{name}:{at}", entry)
    for file, functions in TABLE.items()
    for name, entries in functions.items()
    for at, entry in enumerate(entries)
]
KERNELS = {
    where: each for where, each in ENTRIES if isinstance(each, Taken) or (isinstance(each, Refused) and not each.host)
}
PROGRAMS = {where: each.body for where, each in ENTRIES if isinstance(each, Refused) and each.host}


def _program() -> str:
    lines = ["import triton", "import triton.language as tl", "from tests.gallery.cases import case", HELPERS]
    for at, entry in enumerate(KERNELS.values()):
        lines += ["", f"@case({PARAMETERS!r})", "@triton.jit", f"def kernel_{at}({', '.join(PARAMETERS)}):"]
        lines += [f"    {line}" for line in entry.body.replace(";; ", "\n").splitlines()]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refusals") / "kernels.py"
    path.write_text(_program(), encoding="utf-8")
    return path


def _statements(path: Path) -> Counter[str]:
    """Count the `raise` and `assert` of each function of a file."""
    found: Counter[str] = Counter()

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = f"{name}{child.name}." if isinstance(child, ast.FunctionDef | ast.ClassDef) else name
            if isinstance(child, ast.Raise | ast.Assert):
                found[functools.reduce(str.removeprefix, _CLASSES, inner).removesuffix(".")] += 1
            walk(child, inner)

    walk(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


@pytest.mark.parametrize("name", TABLE)
def test_the_table_has_each_statement_of_stock(name: str) -> None:
    if reason := why_not_installed(NEWEST, "the table is of"):
        pytest.skip(reason)
    spec = find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    expected = _statements(Path(spec.origin).parent / name)
    found = Counter({function: len(entries) for function, entries in TABLE[name].items()})
    assert found == expected, f"not in the table: {expected - found}; not in stock: {found - expected}"


def test_stock_refuses_each(file: Path) -> None:
    if reason := why_not_installed(NEWEST, "the table is of"):
        pytest.skip(reason)
    with contextlib.closing(Stock()) as stock:
        # At full volume all of them: stock takes 20 ms for each.
        asked = list(enumerate(KERNELS))[:: 1 if is_full_for_each_version() else 6]
        taken = [where for at, where in asked if not stock.kernel(file, f"kernel_{at}").error]
    assert not taken


def _is_refused(kernel, signature) -> bool:
    try:
        kernel.compile(signature)
    except CompilationError as error:
        return not error.message.startswith("internal error")
    return False


def test_we_refuse_each_but_what_we_take(file: Path) -> None:
    kernels = loading.load(file, ours=True)
    wrong = [
        f"{where}: {entry.condition}: {entry.body}"
        for at, (where, entry) in enumerate(KERNELS.items())
        if _is_refused(kernels[f"kernel_{at}"].kernel, PARAMETERS) != isinstance(entry, Refused)
    ]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("ours", [False, True])
def test_programs_of_python_are_refused_by_both(file: Path, *, ours: bool) -> None:
    if not ours and (reason := why_not_installed(NEWEST, "the table is of")):
        pytest.skip(reason)
    helpers = next(iter(loading.load(file, ours=ours).values())).kernel.fn.__globals__
    taken: list[str] = []
    for where, program in PROGRAMS.items():
        with contextlib.suppress(Exception):
            exec(program, dict(helpers))
            taken.append(where)
    assert not taken
