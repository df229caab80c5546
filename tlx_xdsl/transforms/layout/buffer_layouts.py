"""One layout for each buffer: what is required of any of its views holds for the allocation and for all views of it.

A requirement flows from the value that it is on to every other name of that value (`analysis/value_classes.py`, and
arguments and results of calls), from a view back to its source and on to other views. Transpositions and reshapes
change the layout on the way. Allocations, aliases and reinterpretations are where it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects.base import bare
from tlx_xdsl.dialects.tlx import UserLayoutAttr
from tlx_xdsl.dialects.tt import CallOp
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.errors import InputError
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location

from ..rewriting import callee_of, functions_of, ops_of, returned, retype, update_signature
from .encodings import values_of
from .views import is_view, layout_of_source, layout_of_view, same_layout


@dataclass(frozen=True)
class Reason:
    """Reason for the layout of a buffer."""

    at: Operation | SSAValue
    what: str
    """The requirement there, as part of a message."""

    @property
    def note(self) -> str:
        """The location and the requirement."""
        location = self.at.location if isinstance(self.at, Operation) else location_of(self.at)
        found = source_location(location)
        return self.what if found is None else f"{found}: {self.what}"


@dataclass(frozen=True)
class Choice:
    """The layout of a value, and why it has that one."""

    encoding: Attribute
    reason: Reason
    is_users: bool
    """True if the user named it when the buffer was allocated."""


class BufferLayouts:
    """The layouts of the buffers of a module as requirements come in; nothing is changed before `retag`."""

    def __init__(self, module: ModuleOp):
        self._module = module
        self._classes = ValueClasses.of(module, MemDescType)
        self._passed = _passed(module)
        self._choices: dict[SSAValue, Choice] = {}
        """By the representative of a value's class."""

    def choice(self, value: SSAValue) -> Choice | None:
        """The layout that was required of `value`; None where nothing was."""
        return self._choices.get(self._classes.representative(value))

    def require(self, value: SSAValue, encoding: Attribute, reason: Reason) -> None:
        """Let `value`, and all views of its buffer, have the layout `encoding`.

        Raises CompilationError when the buffer has another one for another reason, or no layout describes a view.
        """
        is_users = isinstance(encoding, UserLayoutAttr)
        pending: list[tuple[SSAValue, Attribute]] = [(value, bare(encoding))]
        while pending:
            at, wanted = pending.pop()
            known = self.choice(at)
            if known is not None:
                if not same_layout(known.encoding, wanted, memdesc_type(at.type)):
                    raise _conflict(known, Choice(wanted, reason, is_users), at)
                continue
            self._choices[self._classes.representative(at)] = Choice(wanted, reason, is_users)
            for name in self._classes.members(at):
                pending += self._neighbours(name, wanted, reason)

    def respell(self, value: SSAValue, encoding: Attribute) -> None:
        """Let `value` and all views of its buffer have the same layout under another attribute, `encoding`."""
        pending, seen = [(value, encoding)], set[SSAValue]()
        while pending:
            at, wanted = pending.pop()
            first = self._classes.representative(at)
            if first in seen:
                continue
            seen.add(first)
            known = self._choices[first]
            self._choices[first] = replace(known, encoding=wanted)
            for name in self._classes.members(at):
                pending += self._neighbours(name, wanted, known.reason)

    def _neighbours(self, value: SSAValue, encoding: Attribute, reason: Reason) -> Iterator[tuple[SSAValue, Attribute]]:
        """The values whose layouts follow from that of `value`."""
        owner = value.owner
        if isinstance(owner, Operation) and is_view(owner):
            yield owner.operands[0], _follow(owner, encoding, reason, back=True)
        for use in value.uses:
            if use.index == 0 and is_view(use.operation):
                yield use.operation.results[0], _follow(use.operation, encoding, reason, back=False)
        for other in self._passed.get(value, ()):
            yield other, encoding

    def retag(self) -> None:
        """Give all values their layouts, and functions the types that follow."""
        # Types decide what a view is: the values are found before any of them changes.
        values = [(value, choice) for value in _buffers(self._module) if (choice := self.choice(value)) is not None]
        for value, choice in values:
            encoding = UserLayoutAttr.new([choice.encoding]) if choice.is_users else choice.encoding
            retype(value, memdesc_type(value.type).with_encoding(encoding))
        for func in functions_of(self._module).values():
            update_signature(func)


def _follow(op: Operation, encoding: Attribute, reason: Reason, *, back: bool) -> Attribute:
    try:
        return layout_of_source(op, encoding) if back else layout_of_view(op, encoding)
    except InputError as error:
        raise error_at(op, f"{error}, and its layout is required to be {encoding}", [reason.note]) from error


def _conflict(known: Choice, new: Choice, value: SSAValue) -> Exception:
    if new.is_users and not known.is_users:
        known, new = new, known
    kind = "the user chose" if known.is_users else "it needs"
    return error_at(
        new.reason.at,
        f"a buffer can't have two layouts: {new.reason.what}, here {new.encoding}, but elsewhere {kind} "
        f"{known.encoding}",
        [known.reason.note, *_allocation_note(value)],
    )


def _allocation_note(value: SSAValue) -> list[str]:
    """A note at the allocation that `value` is a view of, when views alone lead there."""
    while isinstance(value.owner, Operation) and is_view(value.owner):
        value = value.owner.operands[0]
    location = source_location(location_of(value))
    name = f"'{value.name_hint}'" if value.name_hint else "the buffer"
    return [] if location is None else [f"{location}: {name} comes from here"]


def _buffers(module: ModuleOp) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from (value for value in values_of(op) if isinstance(value.type, MemDescType))


# --- calls ----------------------------------------------------------------------------------------------------------


def _passed(module: ModuleOp) -> dict[SSAValue, list[SSAValue]]:
    """The values that calls take into functions and out of them, both ways."""
    functions = functions_of(module)
    passed: dict[SSAValue, list[SSAValue]] = defaultdict(list)
    for call in ops_of(module, CallOp):
        func = functions.get(callee_of(call))
        if func is None or not func.body.blocks:
            continue
        arguments: Sequence[SSAValue] = func.body.blocks[0].args
        pairs = [*zip(call.arguments, arguments, strict=True), *zip(call.res, returned(func), strict=False)]
        for outside, inside in pairs:
            if isinstance(outside.type, MemDescType):
                passed[outside].append(inside)
                passed[inside].append(outside)
    return passed
