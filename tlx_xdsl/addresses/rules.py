"""The table of what operations make of their operands, and how to register in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation

from tlx_xdsl.addresses.arithmetic import Arithmetic
from tlx_xdsl.addresses.values import State

Rule: TypeAlias = Callable[[Arithmetic, Any, Sequence[Any]], State | None]
"""Gives what is known of the result; None where only what it may depend on is."""

RULES: dict[type[Operation], Rule] = {}
"""By the class of the operation."""


def rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    """Register a rule for operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(classes, function))
        return function

    return register
