"""The dependence of an offset on the program's ids."""

from __future__ import annotations

from tlx_xdsl.analysis.integers.functions import PIECEWISE
from tlx_xdsl.analysis.integers.polynomials import Call, Counter, Lane, Pid, Polynomial, Unknown
from tlx_xdsl.analysis.integers.symbols import Causes

from .arithmetic import causes_of_form
from .model import Classification


def first_unknown(form: Polynomial) -> str | None:
    """Return why nothing can be known about an offset; None where something can."""
    names = sorted(
        symbol.name for symbol in form.all_symbols if isinstance(symbol, Unknown) and Causes.MEMORY in symbol.causes
    )
    return f"it depends on '{names[0]}', which comes from memory or is not known" if names else None


def classify(form: Polynomial) -> tuple[Classification, dict[int, Polynomial]]:
    """The class of an offset of which everything is known, and the strides along the axes of the grid."""
    symbols = form.all_symbols
    axes = sorted(symbol.axis for symbol in symbols if isinstance(symbol, Pid))
    if any(isinstance(symbol, Unknown) and Causes.PID in symbol.causes for symbol in symbols):
        return Classification.PID_NONLINEAR, {}
    if not axes:
        return Classification.PID_INDEPENDENT, {}
    strides = {axis: form.coefficient(Pid(axis)) for axis in axes}
    even = {axis: stride for axis, stride in strides.items() if stride is not None and _is_even(stride)}
    if len(even) == len(axes):
        return (Classification.PID_AFFINE if len(axes) == 1 else Classification.PID_MULTI_AXIS), even
    return (Classification.PID_QUASI_AFFINE if _is_piecewise(form) else Classification.PID_NONLINEAR), {}


def _is_even(stride: Polynomial) -> bool:
    """True if a stride is the same for all programs, positions and iterations of loops."""
    return not any(isinstance(symbol, Pid | Lane | Counter | Unknown) for symbol in stride.all_symbols)


def _is_piecewise(form: Polynomial) -> bool:
    """True if a polynomial is affine in the program's ids in pieces."""
    for product, _ in form:
        dependent = [(symbol, power) for symbol, power in product if _depends(Polynomial.of(symbol))]
        if not dependent:
            continue
        if len(dependent) > 1 or dependent[0][1] > 1:
            return False
        (symbol, _power), *_ = dependent
        if isinstance(symbol, Call) and (
            symbol.function not in PIECEWISE or not all(_is_piecewise(argument) for argument in symbol.arguments)
        ):
            return False
    return True


def _depends(form: Polynomial) -> bool:
    return Causes.PID in causes_of_form(form)
