"""How an offset depends on the program's ids."""

from __future__ import annotations

from tlx_xdsl.addresses.arithmetic import causes_of_form
from tlx_xdsl.addresses.atoms import Causes
from tlx_xdsl.addresses.forms import Call, Counter, Form, Lane, Pid, Unknown
from tlx_xdsl.addresses.model import Classification
from tlx_xdsl.analysis.integers.functions import PIECEWISE


def first_unknown(form: Form) -> str | None:
    """Why nothing can be claimed about an offset; None where something can."""
    names = sorted(atom.name for atom in form.all_atoms if isinstance(atom, Unknown) and Causes.MEMORY in atom.causes)
    return f"it depends on '{names[0]}', which comes from memory or is not known" if names else None


def classify(form: Form) -> tuple[Classification, dict[int, Form]]:
    """The class of an offset of which everything is known, and the strides along the axes of the grid."""
    atoms = form.all_atoms
    axes = sorted(atom.axis for atom in atoms if isinstance(atom, Pid))
    if any(isinstance(atom, Unknown) and Causes.PID in atom.causes for atom in atoms):
        return Classification.PID_NONLINEAR, {}
    if not axes:
        return Classification.PID_INDEPENDENT, {}
    strides = {axis: form.coefficient(Pid(axis)) for axis in axes}
    even = {axis: stride for axis, stride in strides.items() if stride is not None and _is_even(stride)}
    if len(even) == len(axes):
        return (Classification.PID_AFFINE if len(axes) == 1 else Classification.PID_MULTI_AXIS), even
    return (Classification.PID_QUASI_AFFINE if _is_piecewise(form) else Classification.PID_NONLINEAR), {}


def _is_even(stride: Form) -> bool:
    """Whether a stride is the same for all programs, positions and turns of loops."""
    return not any(isinstance(atom, Pid | Lane | Counter | Unknown) for atom in stride.all_atoms)


def _is_piecewise(form: Form) -> bool:
    """Whether a form is affine in the program's ids in pieces."""
    for product, _ in form:
        dependent = [(atom, power) for atom, power in product if _depends(Form.of(atom))]
        if not dependent:
            continue
        if len(dependent) > 1 or dependent[0][1] > 1:
            return False
        (atom, _power), *_ = dependent
        if isinstance(atom, Call) and (
            atom.function not in PIECEWISE or not all(_is_piecewise(argument) for argument in atom.arguments)
        ):
            return False
    return True


def _depends(form: Form) -> bool:
    return Causes.PID in causes_of_form(form)
