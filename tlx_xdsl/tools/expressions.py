"""Python expressions on a command line, over the values of a kernel's arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from tlx_xdsl.errors import CompilationError


def evaluate(option: str, text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression over these names.

    Raises CompilationError for one that has no value.
    """
    try:
        code = compile(ast.parse(text.strip(), mode="eval"), option, "eval")
        return eval(code, {"__builtins__": {}, **names})
    except NameError as error:
        have = f"the names are {', '.join(names)}" if names else "there are no names here"
        raise CompilationError(f"{option}: '{text}' can't be computed: no name '{error.name}', {have}") from error
    except Exception as error:
        raise CompilationError(f"{option}: '{text}' can't be computed: {type(error).__name__}: {error}") from error


def grid_sizes(text: str, names: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers of programs that `--grid` spells: one to three expressions over these names, cdiv, min and max.

    Raises CompilationError for anything else.
    """
    found = evaluate("--grid", text, {**names, "cdiv": _cdiv, "min": min, "max": max})
    sizes = cast(tuple[Any, ...], found if isinstance(found, tuple) else (found,))
    if not 1 <= len(sizes) <= 3 or not all(isinstance(size, int | np.integer) for size in sizes):
        raise CompilationError(f"--grid: expected one to three numbers of programs, found '{text}'")
    return tuple(int(size) for size in sizes)


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)
