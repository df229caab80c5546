"""Operators of torch for the functions of this package (`library`), and the texts of their options.

An operator of torch takes tensors, numbers and texts. A graph that torch has compiled may be kept on disk and run in
another process, so a text says all: a configuration is written with its values, a kernel by the place where it is
defined. Importing this module does not import torch; making operators does.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tlx_xdsl.torch import op

from ..calls.operands import torch_module

Values = tuple[Any, ...]
"""The tensors or the options of a call."""

Run = Callable[[Values, Values], Any]
"""A function of tensors and options."""

Codec = tuple[Callable[[Any], Any], Callable[[Any], Any] | None]
"""What makes of an option what torch takes, and what makes the option of it; None for what a function takes, too."""

Autograd = tuple[Callable[..., None] | None, Callable[..., Any]]
"""`setup_context` and `backward` of `torch.library`."""


class Gradient(NamedTuple):
    """A derivative, of a function of tensors and options.

    save: called with autograd's context, the tensors, the options and the results.
    gradients: called with the context and the gradients of the results, returns one for each tensor, or None.
    """

    save: Callable[[Any, Values, Values, Any], None]
    gradients: Callable[..., Values]

    def of_operator(self, count: int) -> Autograd:
        """`setup_context` and `backward` of `torch.library` for an operator of `count` tensors, and options after."""

        def setup(ctx: Any, inputs: Values, output: Any) -> None:
            ctx.options = len(inputs) - count
            self.save(ctx, inputs[:count], inputs[count:], output if isinstance(output, tuple) else (output,))

        def backward(ctx: Any, *grads: Any) -> Values:
            return *self.gradients(ctx, *grads)[:count], *(None,) * ctx.options

        return setup, backward


class Operator(NamedTuple):
    """A function as torch sees it.

    call: takes the tensors and the options and returns the results, by operators of torch. torch.compile reads it.
    define: makes these operators, of a function that does the work.
    gradient: for calls that autograd alone has to see (`recent`); None where they take the way of all others.
    """

    call: Run
    define: Callable[[Run], None]
    gradient: Gradient | None = None


MADE: dict[str, Any] = {}
"""torch's functions for the operators, by name without `tlx_xdsl::`: what `Operator.call` calls."""


class _Definitions:
    """Definitions that wait until torch's operators are asked for."""

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


def operator(
    name: str,
    parameters: str,
    fake: Callable[..., Any],
    *,
    results: int = 1,
    outs: str = "out",
    tensors: str = "",
    options: str = "",
    configs: Sequence[type] = (),
    codecs: Mapping[str, Codec] | None = None,
    gradient: Gradient | None = None,
    autograd: Autograd | None = None,
    title: str = "",
) -> Operator:
    """The operators `tlx_xdsl::<name>`, which returns new tensors, and `<name>_out`, which writes to tensors.

    parameters: those of both in torch's language, which are options of the function where they are no tensors.
    fake: says of `parameters` what the results are like.
    results: how many there are. One that is None comes as `fake` says: an operator of torch returns tensors.
    outs: their names where they are parameters; "" for no `<name>_out`.
    tensors: the function's tensors in its order: names of `parameters` and `outs`, others are None, and a list that
        stands last is the rest of them. By default `parameters` and then `outs`.
    options: the function's options in its order, by default that of `parameters`.
    configs: the classes that the parameter `config` is made of.
    codecs: those of options that torch does not take as they are, by name.
    gradient: the derivative, if any; `autograd` is `setup_context` and `backward` of `torch.library` instead. By
        default `backward` raises RuntimeError.
    title: the function's name in errors, by default the operator's.
    """
    kinds = {each.partition("=")[0]: kind for kind, _, each in (each.partition(" ") for each in parameters.split(", "))}
    written = outs.split()
    inputs = [each for each, kind in kinds.items() if kind.startswith("Tensor")]
    order = tensors.split() or [*inputs, *written]
    settings = options.split() or [each for each in kinds if each not in inputs]
    rest = order.pop() if kinds.get(order[-1]) == "Tensor[]" else ""
    known: dict[str, Codec] = {each: (bool, None) for each, kind in kinds.items() if kind == "bool"}
    known |= {"config": (as_text, lambda text: from_text(text, *configs)), **(codecs or {})}
    encode = {each: codec[0] for each, codec in known.items()}
    decode = {each: codec[1] for each, codec in known.items() if codec[1] is not None}

    def call(tensors: Values, options: Values) -> Any:
        # torch.compile reads this.
        values = {**dict(zip(order, tensors, strict=False)), **dict(zip(settings, options, strict=True))}
        if rest:
            values[rest] = tensors[len(order) :]
        given = [encode.get(each, _same)(values[each]) for each in kinds]
        into = {each: values[each] for each in written if values[each] is not None}
        if not into:
            return MADE[name](*given)
        refuse_gradients(title or name, tensors, next(iter(into)))
        if len(into) < len(written):
            into = {**dict(zip(written, fake(*given), strict=True)), **into}
        MADE[f"{name}_out"](*given, *into.values())
        return tuple(into.values()) if results > 1 else into["out"]

    def define(run: Run) -> None:
        def implementation(*arguments: Any) -> Any:
            values = dict(zip((*kinds, *written), arguments, strict=False))
            given = (*map(values.get, order), *values.get(rest, ()))
            found = run(given, tuple([decode.get(each, _same)(values[each]) for each in settings]))
            if results == 1 or all(each is not None for each in found):
                return found
            likes = fake(*arguments)
            return tuple([like if each is None else each for each, like in zip(found, likes, strict=True)])

        def into(*arguments: Any) -> None:
            implementation(*arguments)

        def nothing(*arguments: Any) -> None:
            """Return None."""

        def refuse(ctx: Any, *grads: Any) -> Any:
            raise no_gradient(name)

        returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
        made = op(f"tlx_xdsl::{name}", schema=f"({parameters}) -> {returned}", fake=fake)(implementation)
        setup, backward = autograd or (gradient.of_operator(len(inputs)) if gradient else (None, refuse))
        made.register_autograd(backward, setup_context=setup)
        _keep(name)
        if written:
            outputs = "".join([f", Tensor({mark}!) {each}" for mark, each in zip("abc", written, strict=False)])
            schema = f"({parameters}{outputs}) -> ()"
            op(f"tlx_xdsl::{name}_out", schema=schema, mutates_args=written, fake=nothing)(into)
            _keep(f"{name}_out")

    return Operator(call, define, gradient)


def _same(value: Any) -> Any:
    return value


def _keep(name: str) -> None:
    MADE[name] = getattr(torch_module().ops.tlx_xdsl, name).default


def no_gradient(name: str) -> RuntimeError:
    """Return what `backward` of a function raises that has none."""
    return RuntimeError(
        f"{name}: there is no gradient of it yet: call it under torch.no_grad(), or on tensors that want none"
    )


def refuse_gradients(name: str, tensors: Sequence[Any], out: str) -> None:
    """Raise RuntimeError where a gradient is wanted and a result is written to an argument, `out`, as in torch.

    Some of the tensors may be None, or lists.
    """
    flat: list[Any] = [each for given in tensors for each in (given if isinstance(given, list | tuple) else [given])]
    if torch_module().is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in flat):
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
    """Return what `as_text` was given, made of these classes; None for ""."""
    if not text:
        return None
    known = {each.__name__: each for each in classes}

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return known[node.func.id](**{str(each.arg): value(each.value) for each in node.keywords})
        return ast.literal_eval(node)

    return value(ast.parse(text, mode="eval").body)


def place_of(function: Any) -> str:
    """Return where a kernel or function of ours is defined: `module:name`.

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
