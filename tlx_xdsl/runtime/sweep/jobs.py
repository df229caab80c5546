"""The jobs of a sweep: a kernel and one thing that it is compiled for; and all combinations of choices."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import Fixed, KernelSource, Signature

from ..driver.compilation import Specialization
from ..driver.host_values import is_descriptor
from ..launch.tensor_descriptor import TensorDescriptor
from ..simulate.interpret import source_of_kernel

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "cluster", "target", "enable_fp_fusion")
"""Choices beside compile-time arguments: see `Specialization`; `num_stages` is stock Triton's."""


@dataclass(frozen=True)
class Job:
    """One configuration of a kernel (ours, stock Triton's or a plain function)."""

    kernel: Any
    specialization: Specialization
    num_stages: int = 3
    """Depth of the software pipeline that stock Triton makes of a plain kernel's loops."""

    @property
    def source(self) -> KernelSource:
        """Return what was written of the kernel. Raises TypeError for what is no kernel."""
        return source_of_kernel(self.kernel)

    @property
    def settings(self) -> dict[str, Any]:
        """The compile-time arguments and the options of the launch, by name."""
        options = {name: getattr(self.specialization, name) for name in OPTIONS if name != "num_stages"}
        return {**self.specialization.constexprs, **options, "num_stages": self.num_stages}

    @property
    def stated(self) -> dict[str, Any]:
        """Return the settings that are not left to the compiler."""
        return {name: value for name, value in self.settings.items() if value is not None}


def sweep_jobs(
    kernel: Any, base: Specialization, choices: Mapping[str, Sequence[Any]], *, num_stages: int = 3
) -> list[Job]:
    """All combinations of `choices`, the last name varying fastest; what is not chosen is as in `base`.

    A name is a compile-time argument of the kernel or one of `OPTIONS`. The types of the signature may depend on the
    compile-time arguments: `tensordesc<fp16[{BLOCK_M // 2}, {BLOCK_K}]>`.

    Raises CompilationError for a name that is neither, and for a type that can't be computed.
    """
    known = {parameter.name for parameter in source_of_kernel(kernel).parameters if parameter.is_constexpr}
    for name in choices:
        if name not in known and name not in OPTIONS:
            raise CompilationError(
                f"'{name}' can't be chosen: expected a compile-time argument ({', '.join(sorted(known)) or 'none'}) or "
                f"one of {', '.join(OPTIONS)}"
            )
    return [
        _job(kernel, base, dict(zip(choices, values, strict=True)), num_stages, known)
        for values in itertools.product(*choices.values())
    ]


def _job(kernel: Any, base: Specialization, chosen: Mapping[str, Any], num_stages: int, constexprs: set[str]) -> Job:
    values = {**base.constexprs, **{name: value for name, value in chosen.items() if name in constexprs}}
    options = {name: value for name, value in chosen.items() if name not in constexprs}
    stages = options.pop("num_stages", num_stages)
    signature = {name: expanded(type_, values) for name, type_ in base.signature.items()}
    return Job(kernel, replace(base, signature=signature, constexprs=values, **options), stages)


# --- types that depend on compile-time arguments ---------------------------------------------------------------------

_HOLE = re.compile(r"\{([^{}]*)\}")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.FloorDiv: int.__floordiv__,
}


def expanded(type_: Signature, values: Mapping[str, Any]) -> Signature:
    """A type with the numbers for the `{...}` in it, which are sums, products and whole quotients of arguments.

    Raises CompilationError for anything else.
    """
    if isinstance(type_, str):
        return _HOLE.sub(lambda match: str(_number(match[1], values)), type_)
    return type_ if isinstance(type_, Fixed) else tuple(expanded(part, values) for part in type_)


def _number(text: str, values: Mapping[str, Any]) -> int:
    def wrong(found: str) -> CompilationError:
        names = ", ".join(name for name, _ in _numbers(values))
        return CompilationError(
            f"the '{{{text}}}' of a type: expected whole numbers, compile-time arguments ({names}) and + - * //, "
            f"found '{found}'"
        )

    def evaluate(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in dict(_numbers(values)):
                return values[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](evaluate(left), evaluate(right))
            case _:
                raise wrong(ast.unparse(node))

    try:
        return evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise wrong(text) from error


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    return ((name, value) for name, value in values.items() if isinstance(value, int))


# --- arguments, whose blocks are those of each configuration ---------------------------------------------------------

_BLOCK = re.compile(r"tensordesc<\w+\[([\d, ]+)\]")


def array_of_argument(value: Any) -> Any:
    """The array of an argument, or of its descriptor; None for what is no array."""
    base = value.base if is_descriptor(value) else value
    return base if hasattr(base, "dtype") and hasattr(base, "shape") and np.ndim(base) else None


def with_block(array: Any, type_: str) -> Any:
    """Return what a launch passes for an array: a descriptor where the type says its block, else the array."""
    found = _BLOCK.match(type_)
    return array if found is None else TensorDescriptor.from_tensor(array, [int(each) for each in found[1].split(",")])
