"""The slots of every array of a module: those of its allocations, propagated to every value that an array can be.

Within a function an array has many names (`analysis/value_classes.py`), and views of it. A call takes it into
another function; one that is called with arrays in different slots exists once for each combination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.value_classes import ValueClasses, visible
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.dialects.tt import CallOp, FuncOp
from tlx_xdsl.dialects.ttg import MemDescIndexOp, MemDescType
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import callee_of, functions_of, ops_of, returned
from .array_views import (
    ArrayPlace,
    View,
    allocated_at,
    cannot_see,
    is_array_view,
    name_of,
    view_through,
)


@dataclass
class FunctionPlaces:
    """The arrays of a function that do not lie densely, for one combination of the slots of its arguments."""

    func: FuncOp
    entry: Mapping[SSAValue, ArrayPlace | None]
    """The slots of the arrays that are its arguments."""
    values: ValueClasses
    by_class: dict[SSAValue, ArrayPlace] = field(default_factory=dict[SSAValue, ArrayPlace])
    """By the representative of the array's class."""
    views: dict[Operation, View] = field(default_factory=dict[Operation, View])
    """The rewritten views of these arrays."""
    calls: dict[CallOp, FunctionPlaces] = field(default_factory=dict[CallOp, "FunctionPlaces"])
    """The function that each call must call."""
    results: tuple[ArrayPlace | None, ...] | None = None
    """The slots of the arrays that it returns; None while they are not known."""

    def place(self, value: SSAValue) -> ArrayPlace | None:
        """The slots of the buffers of an array; None when they are consecutive."""
        return self.by_class.get(self.values.representative(value))


class ModulePlaces:
    """The slots of the arrays of a module, found from `roots`, those of its allocations.

    Raises CompilationError where an array is used in a way that its slots do not allow.
    """

    def __init__(self, module: ModuleOp, roots: Mapping[SSAValue, ArrayPlace]):
        self.functions: list[FunctionPlaces] = []
        """Every function that the module must have, those first that call others."""
        self._roots = dict(roots)
        self._by_name = functions_of(module)
        self._calls = {func: ops_of(func, CallOp) for func in self._by_name.values()}
        self._solved: set[FuncOp] = set()
        self._known: dict[tuple[str, tuple[ArrayPlace | None, ...]], FunctionPlaces] = {}
        self._roots_in: dict[Operation | None, list[SSAValue]] = {}
        for root in roots:
            self._roots_in.setdefault(_function_around(root), []).append(root)
        self._find_all()

    def _find_all(self) -> None:
        for root in self._roots_in.get(None, []):
            raise error_at(root, "a storage_alias_local_alloc must stand in a function")
        called = {callee_of(call) for calls in self._calls.values() for call in calls}
        # Callers know where arguments lie, so they come first; what only calls itself is left for the end.
        for func in sorted(self._by_name.values(), key=lambda func: func.sym_name.data in called):
            if func not in self._solved:
                self._function(func, (None,) * len(func.function_type.inputs))

    def _function(self, func: FuncOp, arguments: tuple[ArrayPlace | None, ...]) -> FunctionPlaces:
        """`func` for arguments that lie at `arguments`."""
        key = (func.sym_name.data, arguments)
        if key in self._known:
            return self._known[key]
        roots = self._roots_in.get(func, [])
        if func in self._solved:
            func, roots = self._clone(func, roots)
        self._solved.add(func)
        entry: dict[SSAValue, ArrayPlace | None] = dict(
            zip(func.body.blocks[0].args if func.body.blocks else (), arguments, strict=True)
        )
        found = FunctionPlaces(func, entry, ValueClasses.of(func, MemDescType))
        self._known[key] = found
        self.functions.append(found)
        self._solve(found, roots)
        return found

    def _clone(self, func: FuncOp, roots: Sequence[SSAValue]) -> tuple[FuncOp, list[SSAValue]]:
        mapping: dict[SSAValue, SSAValue] = {}
        clone = func.clone(mapping)
        number = 1
        while (name := f"{func.sym_name.data}_{number}") in self._by_name:
            number += 1
        clone.sym_name = StringAttr(name)
        self._by_name[name] = clone
        self._calls[clone] = ops_of(clone, CallOp)
        Rewriter.insert_op(clone, InsertPoint.after(func))
        for root in roots:
            self._roots[mapping[root]] = self._roots[root]
        return clone, [mapping[root] for root in roots]

    # --- in a function ---------------------------------------------------------------------------------------------

    def _solve(self, found: FunctionPlaces, roots: Sequence[SSAValue]) -> None:
        for root in roots:
            self._arrive(found, root, self._roots[root])
        for argument, place in found.entry.items():
            self._arrive(found, argument, place)
        for call in self._calls[found.func]:
            self._call(found, call)
        self._check_sources(found)
        for call, callee in found.calls.items():
            if tuple(found.place(argument) for argument in call.arguments) != tuple(callee.entry.values()):
                raise error_at(call, "the slots of an array that this call takes depend on what it returns")
        found.results = tuple(found.place(value) for value in returned(found.func))

    def _arrive(self, found: FunctionPlaces, value: SSAValue, place: ArrayPlace | None) -> None:
        """Note that `value` has the slots `place`, and follow it; other values are checked at the end."""
        pending = [(value, place)]
        while pending:
            value, place = pending.pop()
            first = found.values.representative(value)
            if place is None or first in found.by_class:
                continue
            found.by_class[first] = place
            for name in found.values.members(value):
                for use in name.uses:
                    if (view := self._use(found, use.operation, place)) is not None:
                        pending.append((use.operation.results[0], view.place))

    def _use(self, found: FunctionPlaces, op: Operation, place: ArrayPlace) -> View | None:
        if is_array_view(op) and op.results[0] not in self._roots:
            found.views[op] = view = view_through(op, place)
            return view
        if not (is_array_view(op) or isinstance(op, MemDescIndexOp | CallOp) or op in found.values.forwarding):
            raise cannot_see(visible(op), place, "needs the whole array in one piece")
        return None

    def _call(self, found: FunctionPlaces, call: CallOp) -> None:
        func = self._by_name.get(callee_of(call))
        arguments = tuple(found.place(argument) for argument in call.arguments)
        if func is None or len(func.function_type.inputs) != len(arguments):
            if (moved := next((place for place in arguments if place is not None), None)) is not None:
                raise cannot_see(call, moved, f"cannot be followed: '@{callee_of(call)}' is no such function")
            return
        callee = self._function(func, arguments)
        if callee.results is None:
            if any(isinstance(value.type, MemDescType) for value in (*call.arguments, *call.res)):
                raise error_at(call, f"the arrays of a recursive call of '@{callee_of(call)}' cannot be followed")
            return
        found.calls[call] = callee
        for result, place in zip(call.res, callee.results, strict=True):
            self._arrive(found, result, place)

    def _check_sources(self, found: FunctionPlaces) -> None:
        """Check that all values that can arrive in a class have its slots."""
        for first, place in found.by_class.items():
            for value in found.values.members(first):
                if value not in found.values.successor_inputs and (other := self._source(found, value)) != place:
                    raise _conflict(found, value, other, place)

    def _source(self, found: FunctionPlaces, value: SSAValue) -> ArrayPlace | None:
        """The slots of a value that no control flow carries to its definition."""
        if value in found.entry:
            return found.entry[value]
        op = value.owner
        if isinstance(op, Operation) and is_array_view(op):
            view = found.views.get(op)
            return self._roots.get(value) if view is None else view.place
        if isinstance(op, CallOp) and op in found.calls:
            return dict(zip(op.res, found.calls[op].results or (), strict=True)).get(value)  # pyright: ignore
        return self._roots.get(value)


def _conflict(found: FunctionPlaces, value: SSAValue, other: ArrayPlace | None, place: ArrayPlace) -> Exception:
    forwarding = found.values.forwarded_by(value)
    taker = "this value" if forwarding is None else f"'{forwarding.name}'"
    origin = value if other is None else other.origin
    mine, others = place.formula, "i" if other is None else other.formula
    if other is not None and mine == others:
        mine, others = f"{mine} of {place.slots}", f"{others} of {other.slots}"
    return error_at(
        forwarding or value,
        f"{taker} may get either of two arrays whose buffers lie differently: buffer i of {place.name} is number "
        f"{mine} of its region, that of {name_of(origin)} is number {others}",
        [allocated_at(place.origin), allocated_at(origin)],
    )


def _function_around(value: SSAValue) -> FuncOp | None:
    return enclosing(value.owner if isinstance(value.owner, Operation) else value.owner.parent_op(), FuncOp)
