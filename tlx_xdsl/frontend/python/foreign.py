"""Objects of other libraries in a kernel: Triton's own language, taken for ours by qualified name.

Triton is not imported here: what it made is recognised by the names of its classes and modules. A module is of its
language when we have its counterpart; what others put below `triton.language`, tutorials for example, is theirs.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import Any, cast

from tlx_xdsl.language.core import (
    AGGREGATE_MARK,
    ALL_DTYPES,
    CONSTEXPR_FUNCTION_MARK,
    LIBRARY_MARK,
    PropagateNan,
    constexpr,
    pointer_type,
    void,
)

from .source import KernelSource

_LANGUAGE = "triton.language"
_MODULES = {
    "triton.language": "tlx_xdsl.language",
    "triton.language.extra.tlx": "tlx_xdsl.language.tlx",
    "triton.language.extra.cuda.libdevice": "tlx_xdsl.language.extra.libdevice",
}
"""Modules of Triton that have another name here; the others keep theirs below `tlx_xdsl.language`."""
_DTYPES = {dtype.name: dtype for dtype in (*ALL_DTYPES, void)}


class NotInOurLanguage(Exception):
    """A name of Triton's language that tlx_xdsl does not have."""


def ours(value: Any) -> Any:
    """Our object for an object of Triton's language; any other object as it is.

    Raises NotInOurLanguage when Triton's language has something there that we do not have.
    """
    if isinstance(value, ModuleType):
        return _our_module(value)
    if not type(value).__module__.startswith("triton") and not _home(value).startswith("triton"):
        return value
    match type(value).__name__:
        case "dtype":
            return _DTYPES.get(value.name, value)
        case "PROPAGATE_NAN":
            return PropagateNan[value.name]
        case "pointer_type":
            return pointer_type(ours(value.element_ty))
        case "constexpr":
            return constexpr(ours(value.value))
        case _:
            pass
    home = _home(value)
    if not _is_within(home, _LANGUAGE):
        return value
    name = getattr(value, "__name__", "")
    if hasattr(value, "__triton_aggregate__") and home != f"{_LANGUAGE}.core":
        return value
    counterpart = _imported(_our_name(home))
    if counterpart is None and not getattr(value, "__triton_builtin__", False):
        return value
    for module in (counterpart, _imported("tlx_xdsl.language"), _imported("tlx_xdsl.language.core")):
        found = getattr(module, name, None)
        if found is not None:
            return found
    raise NotInOurLanguage(f"tlx_xdsl does not have {home}.{name}")


def compile_time(value: Any) -> Any:
    """A compile-time object from outside as kernels see it: without `constexpr` around it, Triton's objects as ours.

    Raises NotInOurLanguage as `ours` does.
    """
    value = ours(value)
    if isinstance(value, constexpr):
        value = ours(value.value)
    if isinstance(value, tuple | list):
        items: list[Any] = [compile_time(item) for item in cast(Sequence[Any], value)]
        cls = cast(Any, type(value))  # pyright: ignore[reportUnknownArgumentType]
        return cls(*items) if hasattr(cls, "_fields") else cls(items)
    return value


def _home(value: Any) -> str:
    """The module that defines a function or a class."""
    module = getattr(value, "__module__", None)
    return module if isinstance(module, str) else ""


def _our_name(module: str) -> str:
    for theirs in sorted(_MODULES, key=len, reverse=True):
        if _is_within(module, theirs):
            return _MODULES[theirs] + module[len(theirs) :]
    return module


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def _our_module(module: ModuleType) -> ModuleType:
    if not _is_within(module.__name__, _LANGUAGE):
        return module
    return _imported(_our_name(module.__name__)) or module


def source_of(value: Any) -> KernelSource | None:
    """The source of a jitted function (ours or Triton's, autotuned or not) or of a library function; else None."""
    source = getattr(value, "source", None)
    if isinstance(source, KernelSource):
        return source
    if getattr(value, LIBRARY_MARK, False) is True:
        return _library_source(value)
    for base in cast("type[Any]", type(value)).__mro__:
        if not base.__module__.startswith("triton"):
            continue
        if base.__name__ in ("Autotuner", "Heuristics"):
            return source_of(value.fn)
        if base.__name__ == "JITFunction":
            known = value.__dict__.get("_tlx_xdsl_source")
            if known is None:
                left_out, unaligned = (
                    frozenset(getattr(value, name, None) or ())
                    for name in ("do_not_specialize", "do_not_specialize_on_alignment")
                )
                noinline = bool(getattr(value, "noinline", False))
                known = KernelSource(inspect.unwrap(value.fn), noinline, (), left_out, unaligned)
                value.__dict__["_tlx_xdsl_source"] = known
            return known
    return None


_library_sources: dict[Any, KernelSource] = {}


def _library_source(function: Any) -> KernelSource:
    if function not in _library_sources:
        _library_sources[function] = KernelSource(function)
    return _library_sources[function]


def constexpr_function_of(value: Any) -> Any:
    """The Python function that a `constexpr_function` wraps, ours or Triton's; else None."""
    if type(value).__name__ == "ConstexprFunction" and type(value).__module__.startswith("triton"):
        return value.fn
    return value if getattr(value, CONSTEXPR_FUNCTION_MARK, False) is True else None


def aggregate_of(value: Any) -> type | None:
    """The class as the user wrote it when `value` is an aggregate class, ours or Triton's; else None."""
    if not isinstance(value, type):
        return None
    cls: Any = value
    if AGGREGATE_MARK in cls.__dict__:
        return cls
    if "__triton_aggregate__" not in cls.__dict__:
        return None
    # Triton's decorator makes a new class; the functions that it makes remember the one that was written.
    for function in cls.__dict__.values():
        for cell in getattr(function, "__closure__", None) or ():
            inner = cell.cell_contents
            if isinstance(inner, type) and inner.__qualname__ == cls.__qualname__ and inner is not cls:
                return inner
    return cls
