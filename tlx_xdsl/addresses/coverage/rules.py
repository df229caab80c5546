"""The table of rules: what an operation makes of the numbers, masks, pointers and descriptors that programs have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation

from tlx_xdsl.addresses.coverage.values import Booleans, Integers, Truth, Value, fitted
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits, integer_bits, scalar_type


@dataclass(frozen=True, eq=False)
class Programs:
    """The programs that are looked at together."""

    grid: tuple[int, int, int]
    ids: tuple[Integers, Integers, Integers]
    """Along x, y and z."""

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.ids[0])


@dataclass(frozen=True, eq=False)
class Here:
    """Where an operation stands: the programs, and which of them get there."""

    programs: Programs
    active: Booleans


Rule: TypeAlias = Callable[[Any, Sequence[Any], Here], Value]

RULES: dict[type[Operation], Rule] = {}
"""By the class of the operation; a rule is called when all operands are known."""


def rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    """Put a rule into the table, for operations of these classes."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(classes, rule))
        return rule

    return register


def bits_of(type_: Attribute) -> int | None:
    """Bits of integers and of tensors of them; None for other types."""
    scalar = scalar_type(type_)
    return 64 if isinstance(scalar, IndexType) else integer_bits(scalar)


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """The dimensions of a tensor; none for a scalar."""
    tensor = as_tensor(type_)
    return () if tensor is None else tuple(tensor.get_shape())


def of_bits(array: Any, bits: int) -> Value:
    """Integers of `bits` bits as a value: of one bit they are a mask."""
    return Truth((array.astype(bool),)) if bits == 1 else fitted((array,), bits)


def bytes_of(element: Attribute) -> int:
    """Bytes from one element to the next, of scalars or of a tensor of them."""
    return -(-element_bits(scalar_type(element)) // 8)


def is_followed(type_: Attribute) -> bool:
    """Whether values of this type are numbers, masks, pointers or descriptors: all others do not matter."""
    return isinstance(scalar_type(type_), IntegerType | IndexType | tt.PointerType | tt.TensorDescType)
