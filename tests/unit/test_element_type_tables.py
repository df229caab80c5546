"""Names of element types: `tlx_xdsl/element_types.py` is the only table of them.

A table relates names of types to each other, or to facts: a dictionary that names three or more types, or a collection
of rows that does. A flat collection of names is none: it selects types, and says nothing about them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tlx_xdsl.element_types import ELEMENT_TYPES, PTX_TYPES, SPELLINGS, TRITON_TYPES

PACKAGE = Path(__file__).parents[2] / "tlx_xdsl"
MANY = 3

NAMES = {
    **{name: name for name in PTX_TYPES if name != "pred"},
    **{name: each.mlir for each in ELEMENT_TYPES for name in (each.name, each.library, each.c, each.mlir) if name},
    **SPELLINGS,
}
"""The type that each name has, by one of its names."""
CLASSES = {f"{each.exported.capitalize()}Type".replace("Bf", "BF"): each.spelling for each in TRITON_TYPES}
"""The same for classes of xDSL, such as `BFloat16Type`; of 8 bits, they begin like `Float8E`."""

KNOWN = {
    "cpu/bundle/launcher.py: _PRINTS": "functions that print numbers: formats of C's `printf`",
    "frontend/slips.py: _OF_TENSORS": "methods of torch's tensors, three of which convert, and what replaces each",
    "ttl/runtime/launch.py: _DTYPES": "data formats of TT-Metalium and their names in ttnn, most of them no types here",
    "ttl/tools/kernels.py: _TYPES": "data formats of TTL and words of the command line, which has no block floats",
    "numerics/difference.py: COMPUTED_IN": "how far numbers may be apart that were rounded to a type on their way",
}
"""Each table that is left, by file and name, and what it is of."""
MOST = 5


def type_named(node: ast.AST) -> str | None:
    """The type that a constant, an attribute such as `np.float16`, or a class of xDSL names; None for any other."""
    match node:
        case ast.Constant(value=str(name)) | ast.Attribute(attr=name):
            return NAMES.get(name)
        case ast.Name(id=name):
            return name if name.startswith("Float8E") else CLASSES.get(name)
        case _:
            return None


def named(node: ast.AST) -> set[str]:
    """The types that are named in `node`."""
    return {name for each in ast.walk(node) if (name := type_named(each)) is not None}


def is_table(node: ast.AST) -> bool:
    """Return whether a literal relates three or more types to something."""
    match node:
        case ast.Dict():
            return len(named(node)) >= MANY
        case ast.Tuple(elts=rows) | ast.List(elts=rows) | ast.Set(elts=rows):
            own = [row for row in rows if isinstance(row, ast.Tuple | ast.List | ast.Call)]
            return len(own) >= MANY and len(named(node)) >= MANY
        case _:
            return False


def tables(module: ast.Module) -> Iterator[str]:
    """The tables of a file, by the names that they are assigned to, or else by the function that they stand in."""

    def visit(node: ast.AST, place: str) -> Iterator[str]:
        if is_table(node):
            yield place
            return
        match node:
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
                place = ast.unparse(target)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                place = name
            case _:
                pass
        for inner in ast.iter_child_nodes(node):
            yield from visit(inner, place)

    yield from visit(module, "")


@pytest.mark.parametrize(
    "text",
    [
        'T = {"fp16": 2, "bf16": 2, "fp32": 4}',
        'T = {2: "float16", 4: "float32", 8: "float64"}',
        "T: dict[str, Any] = {'a': np.float16, 'b': ml_dtypes.bfloat16, 'c': np.int32}",
        "T = {Float16Type: 6, Float32Type: 7, BFloat16Type: 10}",
        'T = (("f16", 16), ("f32", 32), ("f64", 64))',
        "def T():\n    return {'e4m3': 0, 'e5m2': 1, 's8': 2}",
        'T = {"a": {"i8": 1, "i16": 2, "i32": 4}}',
    ],
)
def test_a_table_is_found(text: str):
    assert list(tables(ast.parse(text))) == ["T"]


@pytest.mark.parametrize(
    "text",
    [
        'DTYPES = ("fp16", "bf16", "fp32")',
        'T = {"fp16": 2, "bf16": 2}',
        'T = {name: numpy_type(PTX_TYPES[name][0]) for name in ("f16", "f32", "f64")}',
        "FLOATS = (Float16Type, BFloat16Type, Float32Type)",
        'T = {"fp32": np.float32, "f32": 4, "bf16": 2}',
        'T = {"sum": 1, "max": 2, "min": 3}',
    ],
)
def test_a_selection_is_no_table(text: str):
    assert list(tables(ast.parse(text))) == []


def test_one_table_of_element_types():
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "element_types.py"
        for name in tables(ast.parse(path.read_text(encoding="utf-8")))
    ]
    print(*found, sep="\n")
    assert set(found) == KNOWN.keys(), "new tables: add a column to the one table; gone: strike it off here"
    assert len(found) <= MOST


def test_the_table_is_found():
    assert "ELEMENT_TYPES" in tables(ast.parse((PACKAGE / "element_types.py").read_text(encoding="utf-8")))
