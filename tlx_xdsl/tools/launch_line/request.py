"""Request of a command line, read once: a kernel, options of its launch, and lists of NAME=VALUE.

No compiler and no numpy is loaded for it: a kernel that was compiled before needs neither.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, cast

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.language.core import ALL_DTYPES
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.driver.specialization import LARGEST_CLUSTER
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.runtime.simulate.options import SMALL

from .loading import load_kernel

if TYPE_CHECKING:
    from tlx_xdsl.runtime.check.report import Sizes

_LISTS = ("signature", "constexpr", "arg", "size", "shape", "save", "check")
"""Options that list NAME=VALUE; a command has some of them."""

_OPTIONS: dict[str, Any] = {
    "num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "enable_fp_fusion": None, "target": "sm_90a",
}  # fmt: skip
"""The usual options of a launch."""


@dataclass(frozen=True)
class Said:
    """Options of a command line that kernels and IR have in common."""

    lists: Mapping[str, Mapping[str, str]]
    """What the options that list NAME=VALUE say, by option."""
    options: Mapping[str, Any]
    """Options of the launch, such as `num_warps`."""
    grid: str | None
    seed: int

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The named sizes of one launch. Raises CompilationError for one that has several values."""
        return {name: _one_size(name, text) for name, text in self.lists["size"].items()}

    def size_ranges(self, small: Callable[[Sizes], tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """The values of all sizes; `small` gives those that are called so, from the sizes of the largest launch.

        Raises CompilationError for a text that means nothing.
        """
        texts = self.lists["size"]
        values = {name: size_values(name, text) for name, text in texts.items() if text != SMALL}
        if len(values) == len(texts):
            return values
        chosen = small({name: max(values.get(name, (1,))) for name in texts})
        return {name: values.get(name, chosen) for name in texts}


@dataclass(frozen=True)
class Request(Said):
    """A kernel that a command line asks for, and its options."""

    kernel: Kernel
    defaults: KernelDefaults
    """What the kernel's file says."""

    @property
    def source(self) -> KernelSource:
        """Return what was written of the kernel."""
        return self.kernel.source


def read(args: argparse.Namespace) -> Request:
    """Read the kernel that a command line names, and all that it says of it.

    Raises CompilationError for a kernel that can't be loaded, and for what means nothing.
    """
    return request_of(args, *load_kernel(args.kernel))


def request_of(args: argparse.Namespace, kernel: Kernel, defaults: KernelDefaults) -> Request:
    """Read what a command line says of a kernel of its file. Raises CompilationError for what means nothing."""
    said = said_of(args, defaults)
    return Request(said.lists, said.options, said.grid, said.seed, kernel, defaults)


def said_of(args: argparse.Namespace, defaults: KernelDefaults) -> Said:
    """Read what a command line says, whatever it is about. Raises CompilationError for what means nothing."""
    options = launch_options(args, defaults)
    lists = {option: assignments(getattr(args, option, None) or (), f"--{option}") for option in _LISTS}
    return Said(lists, options, getattr(args, "grid", None), getattr(args, "seed", 0))


def launch_options(args: argparse.Namespace, defaults: KernelDefaults) -> dict[str, Any]:
    """The launch options: what the command line says, then what the file says, then the usual ones.

    Raises CompilationError for sizes that can't be.
    """
    options = {**_OPTIONS, **defaults.options}
    given = {name: getattr(args, name, None) for name in (*options, "cluster")}
    options |= {name: value for name, value in given.items() if value is not None}
    options["cluster"] = _cluster(options.get("cluster"))
    options["passes"] = tuple(getattr(args, "passes", ()))
    for name in ("num_warps", "num_ctas"):
        if not isinstance(options[name], int) or options[name] < 1 or options[name] & (options[name] - 1):
            raise CompilationError(f"{name} must be a power of two, found {options[name]}")
    return options


def _cluster(value: object) -> list[int]:
    if value is None:
        return [1, 1, 1]
    parts = value.split(",") if isinstance(value, str) else list(cast(tuple[object, ...], value))
    try:
        sizes = [int(str(part)) for part in parts]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise CompilationError(f"--cluster: expected one to three sizes X,Y,Z of at least 1, found '{value}'")
    sizes += [1] * (3 - len(sizes))
    if prod(sizes) > LARGEST_CLUSTER:
        raise CompilationError(f"--cluster: a cluster has at most {LARGEST_CLUSTER} CTAs, found {prod(sizes)}")
    return sizes


# The texts ----------------------------------------------------------------------------------------------------------

_OPENING, _CLOSING = "([{<", ")]}>"
_NEXT_NAME = re.compile(r"\s*[^\W\d]\w*\s*=(?!=)")


def _listed(text: str) -> list[str]:
    """The `NAME=VALUE` between commas: those in brackets and quotes aside, and where no other name follows."""
    items, depth, quote = [""], 0, ""
    for at, character in enumerate(text):
        if quote or character in "'\"":
            quote = "" if character == quote else quote or character
        else:
            depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and not depth and not quote and _NEXT_NAME.match(text, at + 1):
            items.append("")
        else:
            items[-1] += character
    return items


def assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """The mapping that repeated `NAME=VALUE` arguments spell; one argument may list several, with commas between them.

    Raises CompilationError for an argument of another form.
    """
    result: dict[str, str] = {}
    for item in (item for text in texts for item in _listed(text)):
        name, separator, value = item.partition("=")
        if not separator or not name.strip().isidentifier() or not value.strip():
            raise CompilationError(f"{option}: expected NAME=VALUE, found '{item.strip()}'")
        result[name.strip()] = value.strip()
    return result


_DTYPES = {name: dtype for dtype in ALL_DTYPES for name in (dtype.name, dtype.spelling)}


def constexpr_value(name: str, text: str, option: str = "--constexpr") -> Any:
    """The value that `option` NAME=text means: a Python literal, or the name of an element type.

    Raises CompilationError for anything else.
    """
    if text in _DTYPES:
        return _DTYPES[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise CompilationError(
            f"{option}: '{name}' needs a Python literal such as 128, True or 'text', or an element type such as "
            f"fp16, found '{text}'"
        ) from error


MOST_VALUES = 10_000
"""Values of one size."""


def size_values(name: str, text: str, option: str = "") -> tuple[int, ...]:
    """The values that `--size name=text` lists, or an option of its own, in this order.

    Raises CompilationError for another text.
    """
    values: list[int] = []
    example = "2,3,4" if option else f"{name}=0..3,7"
    found = text if option else f"{name}={text}"
    option = option or "--size"
    for item in text.split(","):
        first, dots, last = (part.strip() for part in item.partition(".."))
        if not first.isdecimal() or (dots and not last.isdecimal()):
            raise CompilationError(f"{option}: expected values such as {example}, found '{found}'")
        low, high = int(first), int(last or first)
        if low > high:
            raise CompilationError(f"{option}: '{item.strip()}' of '{name}' has no values, the smaller number is first")
        if len(values) + high - low + 1 > MOST_VALUES:
            raise CompilationError(f"{option}: '{name}' has more than {MOST_VALUES:,} values")
        values.extend(range(low, high + 1))
    return tuple(dict.fromkeys(values))


def _one_size(name: str, text: str) -> int:
    """The one value that `--size name=text` gives. Raises CompilationError for another text, or several."""
    value, *others = size_values(name, text)
    if others:
        raise CompilationError(f"--size: '{name}' has one value in a run, found '{text}': tlx check takes several")
    return value
