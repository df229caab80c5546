"""One function of a module as a Python function.

Each value is either a Python name or an expression that stands where the value is used. A loop carries its values
under names that the body assigns again; other values share a name where one ends before the next begins (`names.py`).
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.text.diagnostics import report_warning
from tlx_xdsl.transforms.warp_specialize.tasks_of import NOTE

from .names import ALWAYS, Interval, Scope
from .reductions import plain_reduction
from .rings import is_count
from .shared import Module
from .types import (
    TRANSPARENT,
    NotExpressible,
    Text,
    call,
    dtype,
    element_of,
    full,
    is_natural,
    literal,
    number_of,
    shape_of,
    tupled,
)

Handler = Callable[["Function", Any], Text | None]
"""The expression of an operation in the language; None when the handler has written all there is to write."""

HANDLERS: dict[str, Handler] = {}
"""By the operation's name; filled by the modules of the topics."""
STATEMENTS: dict[str, Callable[[Function, Any], bool]] = {}
"""Functions that write a statement for several operations, by the name of the first; each says whether it did."""

CHEAP = {"arith.constant", "tt.splat", "tt.broadcast", "tt.expand_dims", "ttg.memdesc_index", *TRANSPARENT}
"""Operations that are written where their value is used, however often that is."""

LONGEST = 90
"""Characters of an expression that is not given a name yet."""
_RESERVED = {"tl", "tlx", "tlx_xdsl", "range", "float", "int", "bool", "min", "max", "len", "TLX_COMPILE"}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for operations."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def prop(op: Operation, name: str) -> Any:
    """The property of this name in the IR as Python has it; None when it is left out."""
    match op.properties.get(name):
        case IntegerAttr(value=value, type=type_):
            return bool(value.data) if type_ == i1 else value.data
        case StringAttr(data=text):
            return text
        case DenseArrayBase() as numbers:
            return cast(Any, numbers).get_values()
        case UnitAttr():
            return True
        case other:
            return other


def given(op: Operation, name: str) -> bool | None:
    """A property as an argument that is True or left out."""
    return True if prop(op, name) else None


class Function:
    """Writes the body of a function, a combining region or another piece of code with names of its own."""

    def __init__(self, module: Module, names: set[str] | None = None):
        self.module = module
        self.lines: list[str] = []
        self._depth = 1
        self.scope = Scope(taken=_RESERVED | (names or set()))
        self.at: Operation | None = None
        """The operation that is being written."""
        self._said: set[str] = set()
        """Reasons that stand in the code already."""
        self._texts: dict[SSAValue, Text] = {}
        self.wanted: dict[SSAValue, str] = {}
        """Names that values must get when they are made: those under which a branch or a loop passes them on."""
        self.inlines_effects = False
        """True if operations with an effect may stand in an expression, as in the test of a `while`."""

    # --- names ---------------------------------------------------------------------------------------------------

    @contextmanager
    def within(self, scope: Scope) -> Generator[Scope]:
        """Let the names of what is written inside of the `with` belong to a scope."""
        outer, self.scope = self.scope, scope
        yield scope
        self.scope = outer

    def new_name(self, hint: str | None, interval: Interval = ALWAYS) -> str:
        """Take a name like `hint` for a value with this interval, which nothing else has there."""
        stem = re.sub(r"\W", "_", hint or "") or "v0"
        if stem[0].isdigit() or keyword.iskeyword(stem):
            stem = f"v{stem}"
        name, count = stem, 0
        while not self.scope.is_free(name, interval):
            count += 1
            name = f"{stem}_{count}" if hint else f"v{count}"
        self.scope.take(name, interval)
        return name

    def bind(self, value: SSAValue, text: Text | str) -> None:
        """Let `text` stand for `value`."""
        self._texts[value] = text if isinstance(text, Text) else Text(text)

    def name(self, value: SSAValue, hint: str | None = None) -> str:
        """Give `value` a name: the one that is wanted for it, or a new one."""
        name = self.wanted.get(value) or self.new_name(value.name_hint or hint, self.interval(value))
        self.bind(value, name)
        return name

    def shared_name(self, values: Sequence[SSAValue], hint: str) -> str:
        """Give equal values one name."""
        intervals = [self.interval(value) for value in values]
        first = next((value.name_hint for value in values if value.name_hint), hint)
        name = self.new_name(first, (min(start for start, _ in intervals), max(end for _, end in intervals)))
        for value in values:
            self.bind(value, name)
        return name

    def interval(self, value: SSAValue) -> Interval:
        """The interval in which `value` needs a name of the current scope."""
        block = self.scope.block
        if block is None or self.inlines_effects:
            return ALWAYS
        if value.owner is block:
            start: float = -1
        else:
            made = value.owner if isinstance(value.owner, Operation) else None
            start = min((self.scope.number(op) for op in (made, self.at) if op is not None), default=math.inf)
            if math.isinf(start):
                return ALWAYS
            # Of several results, none may have the name of an operand that a later line needs.
            start -= 0.5 * (made is not None and len(made.results) > 1)
        return start, self.end(value, start)

    def end(self, value: SSAValue, start: float) -> float:
        """The last operation of the current block that mentions `value`; a little later where it has regions."""
        block = self.scope.block
        last = None if block is None else last_use(value, block)
        # What an operation makes while it runs others may not replace what those others use.
        return start + 0.25 if last is None else max(start + 0.25, self.scope.number(last) + 0.5 * bool(last.regions))

    def held(self, value: SSAValue) -> str | None:
        """The name that `value` has in the current scope; None where it has none, or one of a block around."""
        text = self._texts.get(value)
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        is_name = text is not None and text.text.isidentifier() and text.text in self.scope.names
        return text.text if is_name and text is not None and block is self.scope.block else None

    # --- lines ---------------------------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        """Write a line at the current depth."""
        self.lines.append(self.indent + line)

    @property
    def indent(self) -> str:
        """The space before a line at the current depth."""
        return "    " * self._depth

    def blank_line(self) -> None:
        """Write an empty line, unless a block begins here or comments stand before this place."""
        if self.lines and not self.lines[-1].endswith(":") and not self.lines[-1].lstrip().startswith("#"):
            self.lines.append("")

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Write `head`, and what is written inside of the `with` below it; `pass` when that is nothing."""
        self.write(head)
        self._depth += 1
        before = len(self.lines)
        yield
        if all(line.lstrip().startswith("#") for line in self.lines[before:]):
            self.write("pass")
        self._depth -= 1

    # --- values --------------------------------------------------------------------------------------------------

    def text(self, value: SSAValue) -> Text:
        """The value as an expression; a constant as a number where that has the constant's type."""
        if (text := self._texts.get(value)) is not None:
            return text
        number = number_of(value)
        if number is not None and not shape_of(value) and is_natural(number, value.type):
            return literal(number, value.type)
        return self.typed(value)

    def typed(self, value: SSAValue) -> Text:
        """The value as an expression that has its type wherever it stands."""
        if (text := self._texts.get(value)) is not None:
            return text
        number = number_of(value)
        if number is None:
            # An operation that could not be expressed made it.
            return Text(self.name(value))
        return full(shape_of(value), number, element_of(value.type))

    def optional(self, value: SSAValue | None) -> Text | None:
        """The value of an optional operand, as by `typed`."""
        return None if value is None else self.typed(value)

    def number_or_text(self, value: SSAValue) -> Text:
        """The value where the language converts numbers to the type that it needs: a plain number for a constant."""
        number = number_of(value)
        return self.text(value) if number is None else literal(number, value.type)

    def unsigned(self, value: SSAValue) -> Text:
        """The value as an unsigned integer; a number must not be negative."""
        number = number_of(value)
        if number is not None and not shape_of(value) and number >= 0:
            return literal(number)
        return Text(f"{self.typed(value).within(8)}.to({dtype(value.type, unsigned=True)})")

    def call(self, function: str, *arguments: object, **named: object) -> Text:
        """A call, without what is None, in which values are expressions as by `text`."""
        texts = {name: self._argument(argument) for name, argument in named.items()}
        return call(function, *map(self._argument, arguments), **texts)

    def _argument(self, argument: object) -> object:
        return self.text(cast(SSAValue, argument)) if isinstance(argument, SSAValue) else argument

    # --- operations ----------------------------------------------------------------------------------------------

    def operations(self, ops: Sequence[Operation]) -> None:
        """Write operations one after the other."""
        for op in ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        """Write one operation, or remember its expression; what can't be expressed becomes a comment and a warning."""
        self.at = op
        if op in self.module.skipped or (op.name == "arith.constant" and number_of(op.results[0]) is not None):
            return
        if isinstance(note := op.attributes.get(NOTE), StringAttr) and note.data not in self._said:
            self._said.add(note.data)
            self.write(f"# {note.data}")
        if op.name in TRANSPARENT:
            self.bind(op.results[0], self.text(op.operands[0]))
            return
        if (statement := STATEMENTS.get(op.name)) is not None and statement(self, op):
            return
        try:
            handler = HANDLERS.get(op.name)
            if handler is None:
                raise NotExpressible(f"'{op.name}'")
            text = _hinted(op, handler(self, op))
        except NotExpressible as reason:
            self._refuse(op, str(reason))
            return
        if text is not None:
            self._place(op, text)

    def _place(self, op: Operation, text: Text) -> None:
        """Write an expression where its operation stands, or keep it for the place where its value is used."""
        used = [result for result in op.results if result.first_use is not None]
        if not used:
            if not is_side_effect_free(op):
                self.write(str(text))
        elif len(op.results) > 1:
            self.write(f"{', '.join(self.name(result) for result in op.results)} = {text}")
        elif self._stays_inline(op, used[0], text):
            self.bind(used[0], text)
        else:
            self.write(assignment(self.name(used[0]), text))

    def _stays_inline(self, op: Operation, value: SSAValue, text: Text) -> bool:
        if self.inlines_effects:
            return op.name in CHEAP or value.has_one_use()
        return may_inline(op) and len(str(text)) <= LONGEST and value not in self.wanted

    def _refuse(self, op: Operation, reason: str) -> None:
        report_warning(op, f"tlx reverse can't express {reason}")
        self.module.refused.append(op)
        self.write(f"# not expressible: {reason}")
        if op.results:
            self.write(f"# it makes {', '.join(self.name(result) for result in op.results)}")


_HINTS = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}


def _hinted(op: Operation, text: Text | None) -> Text | None:
    """The expression with what the user has promised of its value."""
    for attribute, name in _HINTS.items():
        numbers = op.attributes.get(attribute)
        if text is not None and isinstance(numbers, DenseIntOrFPElementsAttr):
            text = call(f"tl.{name}", text, str(list(numbers.iter_values())))
    return text


def assignment(name: str, text: Text) -> str:
    """Return `name = text`, or `name += rest`."""
    if text.parts is not None and text.parts[0] == name:
        return f"{name} {text.parts[1]}= {text.parts[2]}"
    return f"{name} = {text}"


def may_inline(op: Operation) -> bool:
    """Say whether an operation's expression may stand where its value is used, instead of having a name."""
    if op.name in CHEAP:
        return True
    if len(op.results) != 1 or not is_side_effect_free(op) or (op.regions and plain_reduction(op) is None):
        return False
    value = op.results[0]
    use = value.first_use
    # Named values keep their name; what is used in a loop or a task is computed before it.
    if use is None or use.operation.parent is not op.parent:
        return False
    return is_count(value) or (value.name_hint is None and value.has_one_use())


def last_use(value: SSAValue, block: Block) -> Operation | None:
    """The last operation of `block` in which an expression may mention `value`; None when nothing does."""
    last: Operation | None = None
    seen: set[SSAValue] = set()
    work = [value]
    while work:
        for use in work.pop().uses:
            user: Operation | None = use.operation
            while user is not None and user.parent is not block:
                user = user.parent_op()
            if user is None:
                continue
            if last is None or last.is_before_in_block(user):
                last = user
            if may_inline(use.operation):
                work += [result for result in use.operation.results if result not in seen]
                seen.update(use.operation.results)
    return last


def parameters(fn: Function, block: Block) -> list[tuple[int, str]]:
    """Number and name of the arguments that are parameters; the extents of a descriptor are attributes of it."""
    found: list[tuple[int, str]] = []
    args = list(block.args)
    at = 0
    while at < len(args):
        name = fn.name(args[at], f"arg{at}")
        found.append((at, name))
        type_: Attribute = args[at].type
        at += 1
        if isinstance(type_, TensorDescType):
            rank = len(type_.shape)
            kinds = ["i32"] * rank + ["i64"] * rank
            if [str(arg.type) for arg in args[at : at + 2 * rank]] == kinds:
                for index in range(2 * rank):
                    part = f"{name}.{'shape' if index < rank else 'strides'}[{index % rank}]"
                    fn.bind(args[at + index], part)
                at += 2 * rank
    return found


def returned(fn: Function, values: Sequence[SSAValue]) -> str:
    """A `return` of some values."""
    if not values:
        return "return"
    texts = [fn.text(value) for value in values]
    return f"return {texts[0] if len(texts) == 1 else tupled(texts)}"
