"""Declarations of operations: tables of operation classes outside of the dialects are few.

A table is a module-level collection, a union, one case of a `match`, or an `isinstance`, that names three or more
operation classes and so gives them a property. Handlers are no property: a mapping from operations to functions, or
from names to the operations that they become.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

PACKAGE = Path(__file__).parents[2] / "tlx_xdsl"
OPERATION = re.compile(r"[A-Z]\w*Op")
MANY = 3

KNOWN = {
    "addresses/walk.py: visit: case":
        "operations with scalar code in regions are computed as a whole: control flow of this traversal",
    "analysis/layout_costs.py: all: isinstance":
        "allocations but those of storage_alias_spec, which have no memory of their own yet, and views of bytes",
    "analysis/storage_map_reader.py: __init__: isinstance":
        "the same allocations, and the specs in the place of what they hold",
    "analysis/layout_reasons.py: _SIDES":
        "the words of a reason, which no other analysis has a use for",
    "cpu/linalg/recognize_extrema.py: _OF_FLOATS":
        "operations of xDSL's arith, which can't be given declarations",
    "cpu/linalg/recognize_extrema.py: _chosen: case":
        "operations of xDSL's arith, which can't be given declarations",
    "ttl/analysis/register_sums.py: _is_in_the_way: isinstance":
        "two families of operations that compute or write, and one that prints from registers",
    "transforms/layout/pinned_tensors.py: _TAKES_ANY_LAYOUT":
        "a choice of this pass: the others take any layout, too, but for them a pin is worth a conversion",
    "transforms/nvidia/async_copies.py: _is_only_waited_for: isinstance":
        "the uses of a token that a copy can lose when it becomes a load and a store",
    "analysis/protocol/demand.py: _PASSING":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/tritongpu/chain_reductions.py: _COMBINERS":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/tritongpu/chain_reductions.py: _combined: isinstance":
        "one of them is of xDSL's arith, and a value that all lanes share is a fact of this pass alone",
    "analysis/structure/places.py: _MOVING":
        "operations of pointers, in the place of a declaration that a result has the root of an operand",
    "analysis/structure/sums.py: _SAME":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/accesses/facts.py: _NATURAL":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/accesses/facts.py: _AS_DIVIDEND":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/accesses/facts.py: _CHOICES":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/descriptors.py: _OF_ZERO":
        "most are of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/persistent.py: _ALONE":
        "in the place of a declaration that an operation waits for no other program; others are refused",
    "transforms/warp_specialize/persistent.py: _is_alone: case":
        "control flow of this traversal, and the same property where it depends on the operation",
    "transforms/warp_specialize/prefetch_loads.py: _DIVISIONS":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/products/releases.py: _after_waits: isinstance":
        "the operations that this pass has put there",
    "transforms/warp_specialize/products/trip_counts.py: at_least: case":
        "most are of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/products/turn_graph.py: _units: isinstance":
        "the operations of a slot, as tlx-ws-form-tasks writes them",
    "transforms/warp_specialize/rows/group_places.py: BLOCK_ACCESSES":
        "in the place of a declaration that an operation accesses a box of a tensor",
    "transforms/warp_specialize/growth.py: growth: case":
        "operations of xDSL's arith, which can't be given declarations",
    "transforms/warp_specialize/products/overlap_products.py: _is_ordered_with: isinstance":
        "operations that order shared memory and products, in tasks whose global memory no other task writes",
    "transforms/warp_specialize/split_masks.py: REARRANGED":
        "in the place of a declaration that a result has the elements of an operand in other places",
    "transforms/warp_specialize/tcgen05/accumulators.py: _is_chained: isinstance":
        "the users of a sum that a product takes over",
}  # fmt: skip
"""Each table that is left, by file and name, and why it is no declaration."""
MOST = 29


def operations(node: ast.AST) -> set[str]:
    """The operation classes that are named in `node`."""
    names = (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in ast.walk(node))
    return {name for name in names if OPERATION.fullmatch(name)}


def gives_a_property(value: ast.expr) -> bool:
    """Return whether a module-level value says something about operations, and is no registration of handlers."""
    match value:
        case ast.Dict(keys=keys, values=values):
            named = set[str]().union(*(operations(key) for key in keys if key is not None))
            return len(named) >= MANY and not any(map(is_handler, values))
        case ast.Tuple(elts=rows) | ast.List(elts=rows) if all(isinstance(row, ast.Tuple) for row in rows):
            return not all(is_handler(row.elts[-1]) for row in rows)
        case _:
            return len(operations(value)) >= MANY


def is_handler(value: ast.expr) -> bool:
    """Return whether a value of a mapping is a function, or has one."""
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
        # The type of the operation that a pattern rewrites registers it.
        if not isinstance(function, ast.FunctionDef) or function.name == "match_and_rewrite":
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
