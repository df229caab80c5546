"""What an operation does, the operation says: tables of operation classes outside of the dialects are few.

A table is a module-level collection, a union, one case of a `match`, or an `isinstance`, that names three or more
operation classes and so gives them a property. Handlers are no property: a mapping from operations to functions, or
from names to the operations that they become.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tlx_xdsl"
OPERATION = re.compile(r"[A-Z]\w*Op")
MANY = 3

KNOWN = {}
"""Each table that is left, by file and name, and why it can't be a declaration."""
MOST = 8


def operations(node: ast.AST) -> set[str]:
    """The operation classes that are named in `node`."""
    names = (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in ast.walk(node))
    return {name for name in names if OPERATION.fullmatch(name)}


def gives_a_property(value: ast.expr) -> bool:
    """Whether a module-level value says something about operations, and is no registration of handlers."""
    match value:
        case ast.Dict(keys=keys, values=values):
            named = set[str]().union(*(operations(key) for key in keys if key is not None))
            return len(named) >= MANY and not any(map(is_handler, values))
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if all(
            isinstance(each, ast.Tuple) for each in elements
        ):
            return not all(is_handler(each.elts[-1]) for each in elements)
        case _:
            return len(operations(value)) >= MANY


def is_handler(value: ast.expr) -> bool:
    """Whether a value of a mapping is a function, or has one."""
    match value:
        case ast.Lambda() | ast.Call():
            return True
        case ast.Tuple(elts=elements):
            return any(map(is_handler, elements))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return not OPERATION.fullmatch(name) and not name.isupper()
        case _:
            return False


def tables(path: Path) -> Iterator[str]:
    """The tables of a file, by their names."""
    module = ast.parse(path.read_text())
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if len(operations(statement.value)) >= MANY and gives_a_property(statement.value):
                yield ast.unparse(target)
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef):
            continue
        # The type of the operation that a pattern rewrites registers it.
        if function.name == "match_and_rewrite":
            continue
        for argument in (*function.args.args, *function.args.kwonlyargs):
            if argument.annotation is not None and len(operations(argument.annotation)) >= MANY:
                yield f"{function.name}: {argument.arg}"
        for node in ast.walk(function):
            match node:
                case ast.match_case(pattern=pattern) if len(operations(pattern)) >= MANY:
                    yield f"{function.name}: case"
                case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]) if len(operations(classes)) >= MANY:
                    yield f"{function.name}: isinstance"
                case _:
                    pass


def test_few_tables_of_operation_classes():
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if "dialects" not in path.relative_to(PACKAGE).parts]
    found = [f"{path.relative_to(PACKAGE)}: {name}" for path in files for name in tables(path)]
    print(*found, sep="\n")
    assert set(found) == set(KNOWN), "new tables: declare the property on the operations; gone: strike it off here"
    assert len(found) <= MOST
