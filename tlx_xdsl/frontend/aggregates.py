"""Aggregates: values that are records of the fields that a class annotates."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, cast

from tlx_xdsl.annotations import annotations_of

from .calls import bound_arguments
from .carry import runtime
from .functions import call_jitted, is_compile_time
from .python.foreign import aggregate_of, compile_time, constexpr_function_of, source_of
from .python.source import KernelSource, says_constexpr
from .values import Aggregate, Constexpr, NewAggregate, Value
from .visitor import Argument, CallSite

_STOCK = "triton.language"


def make_aggregate(site: CallSite, shown: Any, cls: type) -> Value:
    """An instance of an aggregate class: by its `__init__`, or field by field when it has none.

    `cls` is the class as the user wrote it, `shown` what its decorator made of it. As in Triton, a class without an
    `__init__` of its own does not inherit one.
    """
    fields = _fields(cls)
    init = cls.__dict__.get("__init__")
    if init is None:
        items = dict(zip(fields, (value for _, value in bound(site, cls.__name__, _signature(cls))), strict=True))
    else:
        source = source_of(init) or KernelSource(inspect.unwrap(constexpr_function_of(init) or init))
        new = NewAggregate(shown, tuple(fields), {})
        call_jitted(site.on(new), source)
        items = new.items
    for name in fields:
        if name not in items:
            raise site.error(f"'{cls.__name__}.__init__' does not assign the field '{name}'")
    values: list[Value] = []
    for name, annotation in fields.items():
        value = items[name]
        if says_constexpr(annotation):
            if not is_compile_time(value):
                raise site.error(f"the field '{name}' of '{cls.__name__}' is a constexpr, found {value.describe()}")
        else:
            value = runtime(site.visitor, site.node, value)
        values.append(value)
    return Aggregate(shown, tuple(fields), tuple(values))


def replaced(site: CallSite) -> Value:
    """`tl.aggregate_replace(instance, field=value, ...)`: an instance is made anew, by the same class."""
    if len(site.positional) != 1 or not isinstance(instance := site.positional[0][1], Aggregate):
        found = site.positional[0][1].describe() if site.positional else "no argument"
        raise site.error(f"tl.aggregate_replace takes an aggregate and values of its fields by name, found {found}")
    for name, (place, _) in site.keywords.items():
        if name not in instance.names:
            known = ", ".join(instance.names)
            raise site.visitor.error(place, f"'{instance.cls.__name__}' has no field '{name}', its fields are {known}")
    items: dict[str, Argument] = {
        name: (site.node, item) for name, item in zip(instance.names, instance.items, strict=True)
    }
    cls = aggregate_of(instance.cls)
    assert cls is not None
    return make_aggregate(replace(site, positional=(), keywords=items | dict(site.keywords)), instance.cls, cls)


def bound(site: CallSite, name: str, signature: inspect.Signature) -> list[Argument]:
    """An argument for each parameter of a class, in order."""
    found = bound_arguments(site, name, signature)
    defaults = {p.name: (site.node, Constexpr(p.default)) for p in signature.parameters.values()}
    return [cast(Argument, found.arguments.get(name, defaults[name])) for name in signature.parameters]


def _bases(cls: type) -> list[type]:
    """The class and those that it inherits from, the oldest first, without what Triton's decorator adds."""
    return [base for base in reversed(cls.__mro__) if base is not object and not base.__module__.startswith(_STOCK)]


def _fields(cls: type) -> dict[str, Any]:
    """The annotations of the fields: those of base classes come first."""
    fields: dict[str, Any] = {}
    for base in _bases(cls):
        fields.update(annotations_of(base))
    return fields


def _signature(cls: type) -> inspect.Signature:
    """The parameters of a class without an `__init__`: its fields, with their defaults, in order."""
    defaults: dict[str, Any] = {}
    for base in _bases(cls):
        # Triton's decorator keeps the defaults of a class apart.
        defaults |= {**base.__dict__, **getattr(base, "__aggregate_defaults__", {})}
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=compile_time(defaults[name]) if name in defaults else inspect.Parameter.empty,
            )
            for name in _fields(cls)
        ]
    )
