"""Groups of dimensions of reshapes (`reassociation` in MLIR): as an attribute, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.printer import Printer

Groups: TypeAlias = Sequence[Sequence[int]]
"""For each dimension of the smaller rank, those of the larger one that make it up."""
GroupsAttr: TypeAlias = ArrayAttr[ArrayAttr[IntegerAttr]]


def groups_attr(groups: Groups) -> GroupsAttr:
    """The groups as an attribute."""
    return _attr(*map(tuple, groups))


@lru_cache(maxsize=1024)
def _attr(*groups: tuple[int, ...]) -> GroupsAttr:
    return ArrayAttr(ArrayAttr(IntegerAttr(dim, i64) for dim in group) for group in groups)


def groups_of(attr: GroupsAttr) -> list[list[int]]:
    """The groups that an attribute states."""
    return [[dim.value.data for dim in group] for group in attr]


def print_groups(printer: Printer, groups: GroupsAttr) -> None:
    """Print ` [[0, 1], [2]]`."""
    printer.print_string(" ")
    with printer.in_square_brackets():
        printer.print_list(groups_of(groups), lambda group: _print_group(printer, group))


def _print_group(printer: Printer, group: Sequence[int]) -> None:
    with printer.in_square_brackets():
        printer.print_list(group, printer.print_int)
