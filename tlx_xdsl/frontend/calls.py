"""Calls of the language's functions: binding arguments, and reading them with errors that name them."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, NoReturn, TypeAlias, TypeVar

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl import wings
from tlx_xdsl.dialects.base import OverBudgetException, needs_of, why_not_compiled
from tlx_xdsl.errors import CompilationError, OverBudgetError, let_through
from tlx_xdsl.language.core import (
    SPELLINGS,
    TRITON_MAX_TENSOR_NUMEL,
    builtin_name,
    constexpr,
    dtype,
    int1,
    int32,
    pointer_type,
)
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.targets import Feature, refusal, target_of

from .builder import Builder, IRDLOpT, Operand, Result, operation
from .python.suggestions import did_you_mean
from .semantic import SemanticError, cast, to_tensor
from .types import ir_type
from .values import NONE, BufferedTensor, Constexpr, Tensor, TensorDescriptor, TupleValue, Value, Values, parts
from .visitor import Argument, CallSite, Visitor

V = TypeVar("V")
OpT = TypeVar("OpT", bound=Operation)
E = TypeVar("E", bound=Enum)


@dataclass
class Call:
    """One call of a function of the language, with its arguments by parameter name."""

    visitor: Visitor
    node: ast.AST
    name: str
    """Qualified name, such as `tlx.local_alloc`."""
    args: Values
    nodes: dict[str, ast.AST]
    """The node of each argument; absent for defaults."""

    @property
    def builder(self) -> Builder:
        """The builder to emit with."""
        return self.visitor.builder

    def fail(self, parameter: str | None, message: str, cause: Exception | None = None) -> NoReturn:
        """Raise the located error `message` about `parameter`, or about the call; `cause` is what it is raised from."""
        node = self.nodes.get(parameter, self.node) if parameter is not None else self.node
        error = self.visitor.error(node, f"{self.name}: {message}")
        if isinstance(cause, OverBudgetException):
            error = OverBudgetError.of(error, cause.resource, cause.required, cause.limit)
        raise error from cause

    def require(self, *alternatives: Feature, what: str = "", notes: tuple[str, ...] = ()) -> None:
        """Refuse targets that have none of `alternatives`; `what` says more than the name of what needs them."""
        target = target_of(self.visitor.capability)
        if not any(map(target.has, alternatives)):
            said = refusal(f"{self.name} {what}".rstrip(), alternatives, target)
            raise self.visitor.error(self.node, said, notes)

    def checked(self, op: OpT) -> OpT:
        """Append `op`, whose verifier runs here already, at the user's call, in case the arguments do not fit.

        The same holds for a target that lacks a feature that `op` requires.
        """
        for feature in needs_of(op):
            self.require(feature)
        if (why := why_not_compiled(op)) is not None:
            self.fail(None, why)
        try:
            op.verify_()
        except VerifyException as error:
            self.fail(None, " ".join(str(error).split()), error)
        return self.builder.insert(op)

    def emit(self, op: type[IRDLOpT], *operands: Operand, results: Sequence[Result] = (), **properties: Any) -> IRDLOpT:
        """Append an operation, checked as by `checked`; see `builder.operation`."""
        return self.checked(operation(op, *operands, results=results, **properties))

    def emit_tensor(
        self,
        op: type[IRDLOperation],
        element: dtype | pointer_type,
        shape: Ints,
        *operands: Operand,
        **properties: Any,
    ) -> Tensor:
        """Append an operation whose only result has that element type and shape, checked as by `checked`."""
        made = self.emit(op, *operands, results=[ir_type(element, shape)], **properties)
        return Tensor(made.results[0], element, shape)

    def expected(self, parameter: str, what: str, wanted: type[Value] | None = None) -> NoReturn:
        """Raise the error that `parameter` is not `what`; the class that is `wanted` selects a hint."""
        self._mismatch(parameter, what, self.args[parameter], wanted)

    def _mismatch(
        self, parameter: str, what: str, value: Value, wanted: type[Any] | None = None, where: str = ""
    ) -> NoReturn:
        hint = _hint(value, wanted)
        self.fail(parameter, f"'{parameter}' must be {what}, found {value.describe()}{where}{hint}")

    def given(self, parameter: str) -> bool:
        """Say whether the argument is something else than None."""
        value = self.args[parameter]
        return not (isinstance(value, Constexpr) and value.value is None)

    def of(self, parameter: str, kind: type[V], what: str) -> V:
        """The argument, which must be a value of class `kind`."""
        value = self.args[parameter]
        if not isinstance(value, kind):
            self._mismatch(parameter, what, value, kind)
        return value

    def python(self, parameter: str, what: str) -> Any:
        """The argument's compile-time value."""
        value = self.args[parameter]
        if isinstance(value, TupleValue):
            return tuple(self._item(parameter, item, what, " in it") for item in value.items)
        return self._item(parameter, value, what)

    def _item(self, parameter: str, value: Value, what: str, where: str = "") -> Any:
        if not isinstance(value, Constexpr):
            self._mismatch(parameter, what, value, Constexpr, where)
        return value.value.value if isinstance(value.value, constexpr) else value.value

    def integer(self, parameter: str, *, minimum: int | None = None) -> int:
        """The argument, which must be a compile-time integer of at least `minimum` that fits in 32 bits."""
        what = "a constexpr integer" if minimum is None else f"a constexpr integer of at least {minimum}"
        value = self.python(parameter, what)
        if isinstance(value, bool) or not isinstance(value, int) or (minimum is not None and value < minimum):
            self.expected(parameter, what)
        if not int32.get_int_min_value() <= value <= int32.get_int_max_value():
            self.expected(parameter, f"{what} that fits in 32 bits")
        return value

    def integers(self, parameter: str) -> Ints:
        """The argument, which must be a tuple of compile-time integers."""
        value = self.python(parameter, "a tuple of constexpr integers")
        if not isinstance(value, tuple | list):
            self.expected(parameter, "a tuple of constexpr integers")
        items: list[Any] = [item.value if isinstance(item, constexpr) else item for item in value]  # pyright: ignore
        if not all(isinstance(item, int) for item in items):
            self.expected(parameter, "a tuple of constexpr integers")
        return tuple(items)

    def known(self, parameter: str, kind: type[V], what: str) -> V:
        """The argument's compile-time value, which must be of class `kind`."""
        value = self.python(parameter, what)
        if not isinstance(value, kind):
            self.expected(parameter, what)
        return value

    def flag(self, parameter: str) -> bool:
        """The argument, which must be true or false at compile time."""
        return bool(self.known(parameter, int, "a constexpr bool"))

    def text(self, parameter: str) -> str:
        """The argument, which must be a string known at compile time."""
        return self.known(parameter, str, "a constexpr string")

    def choice(self, parameter: str, choices: Mapping[str, V]) -> V:
        """The entry of `choices` for the argument, which must be one of its strings."""
        word = self.text(parameter)
        if word not in choices:
            expected = ", ".join(f"'{choice}'" for choice in choices)
            self.fail(parameter, f"'{parameter}' must be one of {expected}, found '{word}'")
        return choices[word]

    def items(self, parameter: str, what: str) -> tuple[Value, ...]:
        """The items of the argument, which must be a tuple or a list; `what` says of what."""
        items = self.visitor.items_of(self.args[parameter])
        if items is None:
            self.expected(parameter, what)
        return items

    def block(self, parameter: str, what: str = "a block") -> Tensor:
        """The argument, which must be a block of at least one dimension."""
        value = self.of(parameter, Tensor, what)
        if not value.shape:
            self.expected(parameter, what, Tensor)
        return value

    def pointer(self, parameter: str, what: str = "a pointer", *, scalar: bool = False) -> tuple[Tensor, dtype]:
        """The argument, a pointer or a block of pointers, and the type of the elements that it points to."""
        value = self.args[parameter]
        if not isinstance(value, Tensor) or not isinstance(value.dtype, pointer_type) or (scalar and value.shape):
            self.expected(parameter, what)
        return value, value.dtype.element_ty

    def shape(self, parameter: str = "shape", *, scalar: bool = False) -> Ints:
        """The argument, which must be a tuple of positive powers of two; with `scalar`, it may be empty.

        A block has `TRITON_MAX_TENSOR_NUMEL` elements at most.
        """
        shape = self.powers_of_two(parameter, self.integers(parameter), empty=scalar)
        if prod(shape) > TRITON_MAX_TENSOR_NUMEL:
            self.fail(parameter, f"a block has {TRITON_MAX_TENSOR_NUMEL} elements at most, found {prod(shape)}")
        return shape

    def powers_of_two(self, parameter: str, sizes: Ints, *, empty: bool = True) -> Ints:
        """`sizes`, which belong to the argument `parameter` and must be positive powers of two."""
        if (not sizes and not empty) or any(size < 1 or size & (size - 1) for size in sizes):
            self.fail(parameter, f"'{parameter}' must hold powers of two, found {list(sizes)}")
        return sizes

    def dtype(self, parameter: str = "dtype") -> dtype:
        """The argument, which must be an element type."""
        return self.known(parameter, dtype, "an element type")

    def enum(self, parameter: str, kind: type[E]) -> E:
        """The argument, which must be a member of `kind`."""
        return self.known(parameter, kind, f"a {kind.__name__}")

    def tensor(self, parameter: str) -> Tensor:
        """The argument as a runtime value."""
        try:
            return to_tensor(self.builder, self.args[parameter])
        except SemanticError:
            self.expected(parameter, "a number or a block")

    def condition(self, parameter: str) -> Tensor:
        """The argument, which must be an int1 or a block of them."""
        value = self.tensor(parameter)
        if value.dtype != int1:
            self.expected(parameter, "an int1, such as a comparison")
        return value

    def scalar(self, parameter: str, element: dtype) -> Tensor:
        """The argument as a runtime scalar of type `element`."""
        return self.as_scalar(parameter, self.args[parameter], element)

    def as_scalar(self, parameter: str, value: Value, element: dtype) -> Tensor:
        """`value`, which belongs to the argument `parameter`, as a runtime scalar of type `element`."""
        if isinstance(value, Constexpr) and isinstance(value.value, bool | int):
            return Tensor(self.builder.constant(value.value, ir_type(element)), element)
        if not isinstance(value, Tensor) or value.shape or isinstance(value.dtype, pointer_type):
            self.fail(parameter, f"'{parameter}' must be a scalar {element}, found {value.describe()}")
        if not value.dtype.is_int():
            self.fail(parameter, f"'{parameter}' must be an integer, found {value.describe()}")
        return cast(self.builder, value, element)

    def predicate(self, parameter: str = "pred") -> Tensor:
        """The argument as an int1; None means true."""
        if not self.given(parameter):
            return self.as_scalar(parameter, Constexpr(True), int1)
        return self.scalar(parameter, int1)

    def coordinates(self, parameter: str, rank: int) -> list[Tensor]:
        """The argument, which must be a tuple of `rank` int32 scalars."""
        value = self.args[parameter]
        if isinstance(value, Constexpr) and isinstance(value.value, tuple | list):
            value = TupleValue(tuple(Constexpr(item) for item in value.value))  # pyright: ignore
        if not isinstance(value, TupleValue) or len(value.items) != rank:
            self.expected(parameter, f"a tuple of {rank} offsets")
        return [self.as_scalar(parameter, item, int32) for item in value.items]


def _hint(value: Value, wanted: type[Any] | None) -> str:
    """A hint how to make a value of the class `wanted` of `value`, where that is known."""
    if wanted is Constexpr and any(isinstance(part.owner, ConstantOp) for part in parts(value)):
        return " (a plain assignment makes a number a runtime value: write `name: tl.constexpr = ...`)"
    if wanted is Tensor and isinstance(value, BufferedTensor):
        return " (tlx.local_load makes a block of a buffer)"
    if wanted is TensorDescriptor and isinstance(value, Tensor) and isinstance(value.dtype, pointer_type):
        return (
            " (an argument is one by its type, tensordesc<fp16[128, 64]>: TensorDescriptor.from_tensor(x, [128, 64]) "
            "in Python, desc(x, [128, 64]) for tlx run)"
        )
    return ""


Handler: TypeAlias = Callable[[Call], Value | None]

HANDLERS: dict[str, Handler] = {}
"""Lowering of each function of the language, by qualified name."""


def lowers(name: str) -> Callable[[Handler], Handler]:
    """Register the meaning of the function `name`."""

    def register(handler: Handler) -> Handler:
        HANDLERS[name] = handler
        return handler

    return register


METHODS: dict[tuple[type[Value], str], tuple[Handler, inspect.Signature]] = {}
"""Methods by the class of the receiver, with the signature that their arguments are bound to."""


def lowers_method(
    cls: type[Value], name: str, *parameters: str, defaults: Mapping[str, Any] | None = None
) -> Callable[[Handler], Handler]:
    """Register the meaning of the method `name` of values of a class; its first parameter is the receiver."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    optional = [inspect.Parameter(each, kind, default=value) for each, value in (defaults or {}).items()]
    signature = inspect.Signature([*(inspect.Parameter(each, kind) for each in parameters), *optional])

    def register(handler: Handler) -> Handler:
        METHODS[cls, name] = handler, signature
        return handler

    return register


def _shown(signature: inspect.Signature) -> str:
    """The parameters and their defaults as a user gives them: without types, and without the object of a method."""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    shown = [parameter for parameter in bare if parameter.name != "self"]
    return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


def bound_arguments(site: CallSite, name: str, signature: inspect.Signature) -> inspect.BoundArguments:
    """The arguments of a call by parameter, as Python matches them.

    Raises CompilationError, located at a surplus or unknown argument or else at the call.
    """
    try:
        return signature.bind(*site.positional, **site.keywords)
    except TypeError as error:
        place, said = site.node, str(error)
        unknown = next((keyword for keyword in site.keywords if keyword not in signature.parameters), None)
        if said.startswith("too many positional") and (surplus := _surplus(signature, site.positional)):
            place = surplus
        elif unknown is not None and repr(unknown) in said:
            given: list[ast.keyword] = getattr(place, "keywords", [])
            place = next((keyword for keyword in given if keyword.arg == unknown), place)
            said += did_you_mean(unknown, signature.parameters, " ({})")
        raise site.visitor.error(place, f"{name}: {said}, expected {name}{_shown(signature)}") from error


def _surplus(signature: inspect.Signature, positional: Sequence[Argument]) -> ast.AST | None:
    """The node of the first positional argument without a parameter."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    room = sum(parameter.kind in kinds for parameter in signature.parameters.values())
    return positional[room][0] if room < len(positional) else None


def bind(site: CallSite, name: str, signature: inspect.Signature) -> Call:
    """Match arguments to parameters as Python does; wrong counts and names are located errors."""
    bound = bound_arguments(site, name, signature)
    args: Values = {}
    nodes: dict[str, ast.AST] = {}
    for parameter in signature.parameters.values():
        given: Any = bound.arguments.get(parameter.name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            args[parameter.name] = TupleValue(tuple(value for _, value in given or ()))
        elif given is not None:
            nodes[parameter.name], args[parameter.name] = given
        else:
            args[parameter.name] = NONE if parameter.default is None else Constexpr(parameter.default)
    return Call(site.visitor, site.node, name, args, nodes)


def call_builtin(site: CallSite, function: Any) -> Value:
    """Call a function of the language that is built in.

    Raises CompilationError, located at the call or at the argument, for arguments that it does not take.
    """
    name = builtin_name(function)
    assert name is not None
    spellings: Mapping[str, str] = getattr(function, SPELLINGS, {})
    # A name is itself where the parameter that it means is given, too: then it is one too many.
    names = {each: spellings.get(each, each) for each in site.keywords}
    keywords = {each if name in site.keywords else name: site.keywords[each] for each, name in names.items()}
    call = bind(replace(site, keywords=keywords), name, signature_of(function))
    handler = HANDLERS.get(name)
    if handler is None:
        raise site.error(f"{name} can't stand here")
    site.visitor.locate(site.node)
    return handled(handler, call)


def handled(handler: Handler, call: Call) -> Value:
    """The value of a call, by its handler, whose errors are located at the call."""
    try:
        return handler(call) or NONE
    except SemanticError as error:
        raise call.visitor.error(call.node, f"{call.name}: {error}") from error
    except CompilationError:
        raise
    except Exception as error:
        let_through(error)
        # The fault of a plug-in is not ours, as an internal error would say.
        for each in wings.installed():
            if not each.is_ours and handler.__module__ in each.wing.lowerings:
                said = f"{call.name}: its lowering in the {each.owner} failed: {type(error).__name__}: {error}"
                raise call.visitor.error(call.node, said) from error
        raise


@functools.cache
def signature_of(function: Any) -> inspect.Signature:
    """The parameters of a function of the language."""
    return inspect.signature(function)
