"""Python expressions as text, with as few parentheses as their meaning allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Python's precedences ("Operator precedence" in its reference), the higher the tighter.
COMPARISON, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(9)
PRECEDENCE = {
    "|": OR, "^": XOR, "&": AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "//": PRODUCT, "%": PRODUCT, "==": COMPARISON, "!=": COMPARISON, "<": COMPARISON, "<=": COMPARISON,
    ">": COMPARISON, ">=": COMPARISON,
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """An expression."""

    text: str
    precedence: int = ATOM

    def __str__(self) -> str:
        """Return the expression."""
        return self.text

    def within(self, precedence: int) -> str:
        """The expression as an operand of something that binds with `precedence`."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def binary(symbol: str, lhs: Text, rhs: Text) -> Text:
    """`lhs symbol rhs`; operators of one precedence group to the left, and comparisons do not chain."""
    precedence = PRECEDENCE[symbol]
    left = lhs.within(precedence + (precedence == COMPARISON))
    return Text(f"{left} {symbol} {rhs.within(precedence + 1)}", precedence)


def unary(symbol: str, value: Text) -> Text:
    """`-value` and the like."""
    return Text(f"{symbol}{value.within(UNARY)}", UNARY)


def call(function: str, *arguments: object, **named: object) -> Text:
    """`function(arguments, name=value)`, without what is None."""
    parts = [str(argument) for argument in arguments if argument is not None]
    parts += [f"{name}={value}" for name, value in named.items() if value is not None]
    return Text(f"{function}({', '.join(parts)})")


def method(value: Text, name: str, *arguments: object, **named: object) -> Text:
    """`value.name(arguments)`."""
    return call(f"{value.within(ATOM)}.{name}", *arguments, **named)


def listed(values: Iterable[Text | str]) -> str:
    """`[a, b]`."""
    return f"[{', '.join(map(str, values))}]"


def tupled(values: Iterable[object]) -> str:
    """`(a, b)`, and `(a,)` for one."""
    texts = list(map(str, values))
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
