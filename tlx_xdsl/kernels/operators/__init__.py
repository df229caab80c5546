"""How functions of this package become operators of torch (`library`), and how their options are written.

An operator of torch takes tensors, numbers and texts. A graph that torch has compiled may be kept on disk and run in
another process, so a text says all: a configuration is written with its values, a kernel by the place where it is
defined. Importing this module does not import torch; making operators does.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tlx_xdsl.torch import op

from ..calls.operands import torch_module

Run = Callable[[tuple[Any, ...], tuple[Any, ...]], Any]
"""A function of tensors and options."""


class Gradient(NamedTuple):
    """A derivative, of a function of tensors and options.

    save: called with autograd's context, the tensors, the options and the results.
    gradients: called with the context and the gradients of the results, returns one for each tensor, or None.
    """

    save: Callable[[Any, tuple[Any, ...], tuple[Any, ...], Any], None]
    gradients: Callable[..., tuple[Any, ...]]

    def of_operator(self, count: int) -> tuple[Callable[..., None], Callable[..., Any]]:
        """`setup_context` and `backward` of `torch.library` for an operator of `count` tensors, and options after."""

        def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.options = len(inputs) - count
            self.save(ctx, inputs[:count], inputs[count:], output if isinstance(output, tuple) else (output,))

        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return *self.gradients(ctx, *grads)[:count], *(None,) * ctx.options

        return setup, backward


class Operator(NamedTuple):
    """A function as torch sees it.

    call: takes the tensors and the options and returns the results, by operators of torch. torch.compile reads it.
    define: makes these operators, of a function that does the work.
    gradient: for calls that autograd alone has to see (`recorded`); None where they take the way of all others.
    """

    call: Run
    define: Callable[[Run], None]
    gradient: Gradient | None = None


def differentiable(call: Run, make: Callable[[Run, Gradient], None], gradient: Gradient) -> Operator:
    """An operator whose `make` is given its gradient, too."""

    def make_with_gradient(run: Run) -> None:
        make(run, gradient)

    return Operator(call, make_with_gradient, gradient)


MADE: dict[str, Any] = {}
"""torch's functions for the operators, by name without `tlx_xdsl::`: what `Operator.call` calls."""


class _Definitions:
    """What is to be made once torch's operators are asked for."""

    waiting: list[Callable[[], None]] = []
    are_made = False


def register(operator: Operator, run: Run) -> None:
    """Have an operator made with the others, or now if those are there."""
    if _Definitions.are_made:
        operator.define(run)
    else:
        _Definitions.waiting.append(lambda: operator.define(run))


def define_all() -> None:
    """Make all operators that are registered, and from now on each as it comes. Imports torch."""
    _Definitions.are_made = True
    while _Definitions.waiting:
        _Definitions.waiting.pop(0)()


def define(
    name: str,
    schema: str,
    run: Callable[..., Any],
    fake: Callable[..., Any],
    *,
    gradient: tuple[Callable[..., None] | None, Callable[..., Any]] | None = None,
) -> None:
    """Make the operator `tlx_xdsl::<name>`, which returns new tensors; `fake` says what they are like.

    `gradient` are `setup_context` and `backward` of `torch.library`; by default `backward` raises RuntimeError.
    """

    def refuse(ctx: Any, *grads: Any) -> Any:
        raise no_gradient(name)

    made = op(f"tlx_xdsl::{name}", schema=schema, fake=fake)(run)
    setup, backward = gradient or (None, refuse)
    made.register_autograd(backward, setup_context=setup)
    _keep(name)


def define_out(name: str, schema: str, run: Callable[..., Any], mutates: Sequence[str] = ("out",)) -> None:
    """Make the operator `tlx_xdsl::<name>_out`, which writes to the tensors `mutates` and returns nothing."""

    def into(*arguments: Any) -> None:
        run(*arguments)

    def fake(*arguments: Any) -> None:
        """Nothing is returned."""

    op(f"tlx_xdsl::{name}_out", schema=schema, mutates_args=mutates, fake=fake)(into)
    _keep(f"{name}_out")


def _keep(name: str) -> None:
    MADE[name] = getattr(torch_module().ops.tlx_xdsl, name).default


def no_gradient(name: str) -> RuntimeError:
    """What `backward` of a function raises that has none."""
    return RuntimeError(
        f"{name}: there is no gradient of it yet: call it under torch.no_grad(), or on tensors that want none"
    )


def refuse_gradients(name: str, tensors: Sequence[Any], out: str = "out") -> None:
    """Raise RuntimeError where a gradient is wanted and a result is written to an argument, `out`, as in torch."""
    is_enabled = torch_module().is_grad_enabled()
    if is_enabled and any(tensor is not None and tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"{name}: argument '{out}': expected none where a tensor wants a gradient: leave it out, or call the "
            "function under torch.no_grad()"
        )


# --- options --------------------------------------------------------------------------------------------------------


def as_text(config: Any) -> str:
    """A dataclass of numbers, texts and other such classes, as Python would write it; "" for None."""
    if config is None:
        return ""
    values = ", ".join([f"{name}={_value_text(getattr(config, name))}" for name in config.__dataclass_fields__])
    return f"{type(config).__name__}({values})"


def _value_text(value: Any) -> str:
    return as_text(value) if hasattr(value, "__dataclass_fields__") else repr(value)


def from_text(text: str, *classes: type) -> Any:
    """What `as_text` was given, made of these classes; None for ""."""
    if not text:
        return None
    known = {each.__name__: each for each in classes}

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return known[node.func.id](**{str(each.arg): value(each.value) for each in node.keywords})
        return ast.literal_eval(node)

    return value(ast.parse(text, mode="eval").body)


def place_of(function: Any) -> str:
    """Where a kernel or function of ours is defined: `module:name`.

    Raises ValueError for one that is not at the top level of a module, where another process would not find it.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    if "<locals>" in name:
        raise ValueError(f"{name}: expected a function at the top level of a module, where torch's graphs find it")
    return name


def found_at(place: str) -> Any:
    """The function at a place of `place_of`."""
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
