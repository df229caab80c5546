"""Operations on elements and their names in the language: from name to operation here, back in `decompile/`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith as xarith, math
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.language.core import dtype, float32, float64, int32, int64, uint32, uint64

# --- operators ------------------------------------------------------------------------------------------------------

INTEGER_OPS: dict[str, type[IRDLOperation]] = {
    "+": xarith.AddiOp,
    "-": xarith.SubiOp,
    "*": xarith.MuliOp,
    "&": xarith.AndIOp,
    "|": xarith.OrIOp,
    "^": xarith.XOrIOp,
    "<<": xarith.ShLIOp,
}
SIGNED_OPS: dict[str, tuple[type[IRDLOperation], type[IRDLOperation]]] = {
    "//": (xarith.DivSIOp, xarith.DivUIOp),
    "%": (xarith.RemSIOp, xarith.RemUIOp),
    ">>": (xarith.ShRSIOp, xarith.ShRUIOp),
    "min": (xarith.MinSIOp, xarith.MinUIOp),
    "max": (xarith.MaxSIOp, xarith.MaxUIOp),
}
"""For signed and for unsigned integers."""
FLOAT_OPS: dict[str, type[IRDLOperation]] = {
    "+": xarith.AddfOp,
    "-": xarith.SubfOp,
    "*": xarith.MulfOp,
    "/": xarith.DivfOp,
    "%": arith.RemFOp,
    "min": xarith.MinnumfOp,
    "max": xarith.MaxnumfOp,
}
NAN_OPS: dict[str, type[IRDLOperation]] = {"min": xarith.MinimumfOp, "max": xarith.MaximumfOp}
"""The float operations that give NaN when an operand is NaN."""
COMPARISONS: dict[str, tuple[str, str, str]] = {
    "==": ("eq", "eq", "oeq"),
    "!=": ("ne", "ne", "une"),
    "<": ("slt", "ult", "olt"),
    "<=": ("sle", "ule", "ole"),
    ">": ("sgt", "ugt", "ogt"),
    ">=": ("sge", "uge", "oge"),
}
"""The predicates for signed integers, unsigned integers and floats."""
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison that says the same with its sides swapped."""

# --- functions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A function `tl.name` that is one operation, whose operands are the arguments in order."""

    op: type[IRDLOperation]
    elements: tuple[dtype, ...] = (float32, float64)
    """Types that the elements of arguments may have; compile-time numbers take the type of the others."""


FUNCTIONS = {
    "exp": Function(math.ExpOp),
    "exp2": Function(math.Exp2Op),
    "log": Function(math.LogOp),
    "log2": Function(math.Log2Op),
    "cos": Function(math.CosOp),
    "sin": Function(math.SinOp),
    "sqrt": Function(math.SqrtOp),
    "rsqrt": Function(math.RsqrtOp),
    "erf": Function(math.ErfOp),
    "floor": Function(math.FloorOp),
    "ceil": Function(math.CeilOp),
    "sqrt_rn": Function(tt.PreciseSqrtOp, (float32,)),
    "div_rn": Function(tt.PreciseDivFOp, (float32,)),
    "umulhi": Function(tt.MulhiUIOp, (int32, int64, uint32, uint64)),
}
"""By the name of the function."""

CHOICES: dict[str, tuple[type[IRDLOperation], ...]] = {"abs": (math.AbsFOp, math.AbsIOp), "fma": (math.FmaOp,)}
"""Functions whose operation depends on the types of the arguments, or whose arguments have rules of their own."""
