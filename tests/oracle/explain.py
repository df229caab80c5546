"""Words for values and operations of a module."""

from pathlib import Path

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tlx_xdsl.text.diagnostics import location_of, source_location


def place(of: SSAValue | Operation) -> str:
    """Return file and line of a value or an operation."""
    found = source_location(location_of(of) if isinstance(of, SSAValue) else of.location)
    return f"{Path(found.filename).name}:{found.line}" if found else "unknown"


def expression(value: SSAValue, depth: int = 4) -> str:
    """Return a value as an expression, cut off at some depth."""
    if not isinstance(value, OpResult):
        return f"<{value.name_hint or 'argument'}>"
    op = value.op
    if op.name == "arith.constant":
        return _constant(op.properties["value"])
    name = op.name.removeprefix("tt.").removeprefix("arith.")
    if name == "cmpi" or name == "cmpf":
        predicate = op.properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        name = f"{name}.{predicate.value.data}"
    if len(op.results) > 1:
        name = f"{name}#{value.index}"
    if depth == 0 and op.operands:
        return f"{name}(…)"
    return f"{name}({', '.join(expression(operand, depth - 1) for operand in op.operands)})"


def _constant(attribute: Attribute) -> str:
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return str(attribute.value.data)
    if isinstance(attribute, DenseIntOrFPElementsAttr) and attribute.is_splat():
        return f"splat {attribute.get_values()[0]}"
    return str(attribute)


def described(value: SSAValue) -> str:
    """Return a value with its type and place."""
    return f"{expression(value)} : {value.type}  [{place(value)}]"
