"""Every public name of stock Triton's language exists here, with the same parameters."""

# covers: tl.composite_types, tl.dtypes, tl.target_info, tl.creation, tl.standard, libdevice

from __future__ import annotations

import enum
import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

import tlx_xdsl.language as tl
from tests.unit.frontend.oracle.against_stock import reference_version
from tlx_xdsl.frontend import lower as lower
from tlx_xdsl.frontend.calls import HANDLERS
from tlx_xdsl.frontend.python import foreign
from tlx_xdsl.language.core import LIBRARY_MARK, builtin_name, constexpr

pytestmark = [pytest.mark.backend, reference_version()]

HIDDEN = {"_semantic", "_generator", "_builder"}
"""Parameters that stock's compiler passes, and users don't."""

UNTIL_3_8 = {"boundary_check", "padding_option"}
"""Parameters of `load` and `store` that stock has for block pointers up to 3.8, and we with every version."""

# Loops' ranges and conditions are functions here: a program never holds an instance.
LOOP_CLASSES = {"range", "static_range", "condition"}

META_HINTS = {"range": 12, "dot": 2}
"""Keyword-only parameters of ours that Meta's Triton has beyond stock's."""


def stock():
    import triton.language

    return triton.language


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults of what users pass."""
    function = getattr(function, "fn", function)
    hidden = HIDDEN | (UNTIL_3_8 if getattr(function, "__name__", "") in ("load", "store") else set())
    return [
        (parameter.name, parameter.kind, default(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in hidden
    ]


def without_hints(name: str, function: Any) -> list[tuple[str, Any, Any]]:
    """The parameters that stock has, too."""
    found = parameters(function)
    hints = found[len(found) - META_HINTS.get(name, 0) :]
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in hints)
    return found[: len(found) - len(hints)]


def default(value: Any) -> Any:
    """A default in a form that both languages share."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if isinstance(value, enum.Enum) or type(value).__name__ == "PROPAGATE_NAN":
        return value.name
    return str(value) if type(value).__name__ == "dtype" else value


def has_meaning(function: Any) -> bool:
    """Return whether the frontend can do something with `function`: it has a handler, or a body."""
    name = builtin_name(function)
    if name in ("tl.range", "tl.static_range", "tl.condition"):
        return True  # the frontend looks at these in `for` and `while`
    return name in HANDLERS if name is not None else hasattr(function, LIBRARY_MARK)


def names_of_stock() -> list[str]:
    try:
        return [] if importlib.util.find_spec("triton") is None else sorted(stock().__all__)
    except ImportError:
        return []


@pytest.mark.parametrize("name", names_of_stock())
def test_the_name_exists_with_the_same_parameters(name):
    theirs = getattr(stock(), name)
    ours = getattr(tl, name)
    if isinstance(theirs, ModuleType):
        assert isinstance(ours, ModuleType)
    elif isinstance(theirs, type):
        if name in LOOP_CLASSES:
            assert without_hints(name, ours) == parameters(theirs.__init__)[1:]
    elif callable(theirs) and not isinstance(theirs, stock().dtype):
        assert without_hints(name, ours) == parameters(theirs)
        assert has_meaning(ours), f"{name} has neither a handler nor a body"
    else:
        assert str(ours) == str(theirs)


@pytest.mark.parametrize("name", [name for name in names_of_stock() if name in ("dtype", "block_type", "constexpr")])
def test_classes_take_the_same_arguments(name):
    theirs, ours = getattr(stock(), name), getattr(tl, name)
    assert [p[0] for p in parameters(ours.__init__)] == [p[0] for p in parameters(theirs.__init__)]


def members(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(cls).items()
        if (not name.startswith("_") or name.startswith("__")) and callable(member) and not isinstance(member, type)
    }


IMPLEMENTATION = {
    "__init__", "__hash__", "__str__", "__repr__", "__eq__",
    # What stock's compiler asks of its own classes.
    "to_ir", "mangle",
}  # fmt: skip

# Reflected comparisons are no methods of Python's data model: nothing calls them.
UNUSED_OPERATORS = {"__req__", "__rne__", "__rlt__", "__rle__", "__rgt__", "__rge__"}


def test_tensors_have_the_same_members():
    missing, different = [], []
    for name, theirs in members(stock().tensor).items():
        if name in IMPLEMENTATION | UNUSED_OPERATORS:
            continue
        ours = getattr(tl.tensor, name, None)
        if ours is None:
            missing.append(name)
        elif not name.startswith("__") and parameters(ours)[1:] != parameters(theirs)[1:]:
            different.append((name, parameters(ours), parameters(theirs)))
    assert not missing
    assert not different


def test_tensors_members_have_a_meaning():
    for name in members(stock().tensor):
        if not name.startswith("__"):
            assert has_meaning(getattr(tl.tensor, name)), name


@pytest.mark.parametrize("name", ["dtype", "pointer_type", "block_type"])
def test_types_answer_the_same_questions(name):
    theirs, ours = getattr(stock(), name), getattr(tl, name)
    wanted = {member for member in vars(theirs) if not member.startswith("_")} - IMPLEMENTATION
    assert not {member for member in wanted if not hasattr(ours, member)}


def test_element_types_answer_alike():
    for theirs in (value for value in vars(stock()).values() if isinstance(value, stock().dtype)):
        if type(theirs) is not stock().dtype:
            continue
        ours = tl.dtype(theirs.name)
        for question in ("is_floating", "is_int", "is_int_signed", "is_int_unsigned", "is_fp8", "is_bool"):
            assert getattr(ours, question)() == getattr(theirs, question)(), (theirs, question)
        assert (ours.primitive_bitwidth, ours.itemsize) == (theirs.primitive_bitwidth, theirs.itemsize)
        assert str(ours) == str(theirs)


def test_math_is_the_same():
    import triton.language.math as theirs

    public = [
        name
        for name, value in vars(theirs).items()
        if inspect.isfunction(value) and value.__module__ == theirs.__name__
    ]
    public = [name for name in public if not name.startswith("_")]
    assert public
    for name in public:
        assert parameters(getattr(tl.math, name)) == parameters(getattr(theirs, name))
        assert has_meaning(getattr(tl.math, name))


LIBDEVICE = {"fast_tanhf": "stock lists it and has no implementation for NVIDIA"}


def test_libdevice_is_the_same():
    from triton.language.extra import libdevice as theirs

    from tlx_xdsl.language.extra import libdevice as ours

    public = [name for name, value in vars(theirs).items() if inspect.isfunction(value) and not name.startswith("_")]
    assert len(public) > 190
    for name in public:
        if name not in LIBDEVICE:
            assert parameters(getattr(ours, name)) == parameters(getattr(theirs, name))
            assert has_meaning(getattr(ours, name))


CUDA = {
    "convert_custom_float8_sm70": "software conversion of fp8e4b15, a format of GPUs before Hopper",
    "convert_custom_float8_sm80": "software conversion of fp8e4b15, a format of GPUs before Hopper",
}


def test_cuda_is_the_same():
    from triton.language.extra import cuda as theirs

    for name in theirs.__all__:
        if name in CUDA:
            assert not hasattr(tl.extra.cuda, name)
        elif name != "libdevice":
            assert parameters(getattr(tl.extra.cuda, name)) == parameters(getattr(theirs, name))
            assert has_meaning(getattr(tl.extra.cuda, name))


def test_target_info_is_the_same():
    import triton.language.target_info as theirs

    for name, value in vars(theirs).items():
        if type(value).__name__ == "ConstexprFunction":
            assert parameters(getattr(tl.target_info, name)) == parameters(value)
            assert has_meaning(getattr(tl.target_info, name))


def test_kernels_may_name_stock_s_own_objects():
    from triton.language import target_info
    from triton.language.extra import cuda, libdevice

    functions = [getattr(stock(), name) for name in stock().__all__ if callable(getattr(stock(), name))]
    functions += (getattr(cuda, name) for name in cuda.__all__ if name not in CUDA)
    functions += (libdevice.pow, libdevice.isnan)
    assert has_meaning(foreign.ours(target_info.is_cuda))
    for function in functions:
        if inspect.isfunction(function):
            assert has_meaning(foreign.ours(function)), function
    for value in (*(getattr(stock(), name) for name in ("void", "int1", "float8e5")), stock().PropagateNan.ALL):
        assert type(foreign.ours(value)).__module__.startswith("tlx_xdsl")


def test_core_has_what_the_language_has():
    for name in ("_aggregate", "constexpr", "builtin", "extern_elementwise", "load", "static_assert"):
        assert hasattr(stock().core, name)
        assert hasattr(tl.core, name)


def test_constexprs_compute_outside_of_kernels():
    three = tl.constexpr(3)
    assert isinstance(three + 1, constexpr)
    assert (three + 1).value == 4
    assert (10 // three).value == 3
    assert (2**three).value == 8
    assert [0, 1, 2, 3][three] == 3
    assert bool(three > 2)
    assert not three < 2
    assert str(three) == str(stock().constexpr(3))
