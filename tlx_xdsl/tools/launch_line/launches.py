"""The launch that a command line says: its grid, and the values of its arguments, over named sizes."""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.grid import sizes_of
from tlx_xdsl.language.core import constexpr, pointer_type
from tlx_xdsl.runtime.driver.host_values import Typed, defaults_of, numpy_dtype, typed
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

from .expressions import evaluate
from .rank_values import check_for_one, value_on_ranks
from .request import Request, Said, constexpr_value

_LAUNCH = ("num_warps", "num_ctas", "cluster", "target", "enable_fp_fusion", "num_stages", "passes")
"""Options of a launch that a run has, too."""


Contents: TypeAlias = Literal["all", "integers", "none"]
"""The arrays that are filled; all others are zeros, which cost no time, as large as the GPU's memory."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel."""

    source: KernelSource
    arguments: Mapping[str, Any]
    """Values by parameter, constants included."""
    types: Mapping[str, Any]
    """What is not to be derived from values."""
    names: Mapping[str, Any]
    """What the expressions of a command line may name."""
    grid: tuple[int, int, int]
    options: Mapping[str, Any]


def launch_at(request: Request, sizes: Mapping[str, int], contents: Contents = "all", ranks: int = 0) -> Launch:
    """Return the launch that a command line says, at these sizes; with `ranks`, on that many GPUs.

    Raises CompilationError for what does not fit.
    """
    source = request.source
    given = _given(request, sizes, contents, ranks)
    _check_missing(request, {**given.constants, **given.values})
    arguments = {name: constexpr(value) for name, value in given.constants.items() if name not in given.values}
    arguments |= given.values
    names = {**sizes, **({"ranks": ranks} if ranks else {}), **defaults_of(source), **given.constants, **given.values}
    options = {name: request.options[name] for name in _LAUNCH}
    return Launch(source, arguments, given.types, names, grid_of(request, names), options)


def grid_of(said: Said, names: Mapping[str, Any], *, least: int = 0) -> tuple[int, int, int]:
    """Return the grid, whose expressions may name these numbers.

    Raises CompilationError for an expression that has no value, InputError for one that is no grid.
    """
    return sizes_of(evaluate("--grid", said.grid or "1", numbers_of(names)), least=least, of="--grid: ")


def types_of(request: Request) -> Typed:
    """Return the types and constants of the arguments that are given by value; arrays are not filled.

    Raises CompilationError for what does not fit.
    """
    given = _given(request, request.sizes, "none")
    return typed(request.source, {**given.constants, **given.values}, given.types)


def values_of(request: Request, contents: Contents = "all") -> Mapping[str, Any]:
    """Return the values of the arguments, without constants. Raises CompilationError for what does not fit."""
    return _given(request, request.sizes, contents).values


@dataclass(frozen=True)
class _Given:
    """Arguments, as a command line and the file give them."""

    constants: Mapping[str, Any]
    values: Mapping[str, Any]
    types: Mapping[str, Any]
    """What is not to be derived from values."""


def _given(request: Request, sizes: Mapping[str, int], contents: Contents = "all", ranks: int = 0) -> _Given:
    source, defaults, texts, stated = request.source, request.defaults, request.lists["arg"], request.lists["constexpr"]
    _check_sizes(request, sizes)
    # A parameter with the name of a size has its value, unless the command line says another one.
    own = {name: size for name, size in sizes.items() if name in source.signature.parameters and name not in texts}
    for name in (*texts, *defaults.constexprs, *own, *stated):
        _check_parameter(name, source)
    passed = {name: size for name, size in own.items() if name not in stated and not _is_constant(source, name)}
    known = {**sizes, "ranks": ranks} if ranks else sizes
    constants = {name: _constant(name, text, known) for name, text in stated.items()}
    hints = {name: hint_of_signature(defaults.signature.get(name)) for name in (*texts, *own)}

    def value(name: str, text: str) -> Any:
        def read(text: str, of_rank: Mapping[str, int], draw: tuple[int, ...]) -> Any:
            return fitting_value(name, text, hints[name], request.seed, {**sizes, **of_rank}, contents, draw)

        if ranks:
            return value_on_ranks(name, text, ranks, read, _items)
        check_for_one(name, text)
        return read(text, {}, ())

    values = {name: value(name, text) for name, text in texts.items()}
    types = {
        name: defaults.signature[name]
        for name, hint in hints.items()
        if hint.is_number and name in (*values, *passed) and ":" not in texts.get(name, "")
    }
    return _Given({**defaults.constexprs, **own, **constants}, {**values, **passed}, types)


def _constant(name: str, text: str, sizes: Mapping[str, int]) -> Any:
    """The value of a compile-time argument: as the text says, or what it computes from sizes."""
    try:
        return constexpr_value(name, text)
    except CompilationError:
        if not sizes:
            raise
    return evaluate("--constexpr", text, sizes)


def _is_constant(source: KernelSource, name: str) -> bool:
    return next(each.is_constexpr for each in source.parameters if each.name == name)


def numbers_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are numbers."""
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | np.generic)}


def _check_parameter(name: str, source: KernelSource) -> None:
    """Check that a kernel has a parameter that a command line names. Raises CompilationError."""
    parameters = source.signature.parameters
    if name not in parameters:
        have = f"its parameters are {', '.join(parameters) or 'none'}"
        similar = did_you_mean(name, parameters)
        raise CompilationError(f"--arg: '{source.name}' has no parameter '{name}'{similar or ','} {have}")


def _check_sizes(request: Request, sizes: Mapping[str, int]) -> None:
    """Check that something depends on each size: one that is misspelled would be run at all of its values in vain."""
    texts = (request.grid or "", *request.lists["arg"].values(), *request.lists["constexpr"].values())
    for name in sizes:
        is_named = re.compile(rf"\b{name}\b").search
        if name not in request.source.signature.parameters and not any(map(is_named, texts)):
            raise CompilationError(f"--size: no parameter, --arg, --constexpr or --grid names '{name}'")


def _check_missing(request: Request, given: Mapping[str, Any]) -> None:
    """Check that every argument has a value."""
    source, signature = request.source, request.defaults.signature
    missing = [
        name
        for name, parameter in source.signature.parameters.items()
        if name not in given and parameter.default is parameter.empty
    ]
    if missing:
        known = {parameter.name: parameter for parameter in source.parameters}
        wanted = [
            f"--constexpr {name}=VALUE" if known[name].is_constexpr else _example(name, signature.get(name))
            for name in missing
        ]
        raise CompilationError(f"'{source.name}' needs values: {' '.join(wanted)}")


def _example(name: str, type_: object) -> str:
    hint = hint_of_signature(type_)
    return f"--arg {name}={'NUMBER' if hint.is_number else 'randn[ROWS,COLUMNS]' if hint.block else 'VALUE'}"


# --- values of arguments ----------------------------------------------------------------------------------------------
#
# They are spelled so:
#
#     5   2.5   True   None   5:i64             a number, also with its type
#     randn:fp16[512,512]                       normal random numbers; also rand (0 to 1), zeros, ones, nan, arange
#     empty:i32[64]                             an array that nothing has written: to read it is a fault
#     full(0.5):f32[64]   randint(0,10)[64]     one value; integers from 0 to 9
#     a.npy   a.npy:bf16                        a file of numpy's
#     desc(randn:fp16[512,512], [64,64])        a tensor descriptor with its block; a third item `nan` is the padding
#     (randn[64], 3)                            a tuple
#     randn[M,2*K]   M*K                        expressions over named sizes
#
# What a type is known for, from the file's TLX_COMPILE or from IR, may leave its type out, and a descriptor is made of
# an array where one is needed.


EXPECTED = "a number, an array such as randn:fp16[512,512] or FILE.npy, or desc(ARRAY, [64,64])"

Fill: TypeAlias = Callable[[np.random.Generator, tuple[int, ...], list[float]], NDArray[Any]]
_FILLS: dict[str, tuple[int, str, Fill]] = {
    "randn": (0, "fp32", lambda random, shape, _: random.standard_normal(shape, np.float32)),
    "rand": (0, "fp32", lambda random, shape, _: random.random(shape, np.float32)),
    "zeros": (0, "fp32", lambda _, shape, __: np.zeros(shape)),
    "empty": (0, "fp32", lambda _, shape, __: np.empty(shape)),
    "ones": (0, "fp32", lambda _, shape, __: np.ones(shape)),
    "nan": (0, "fp32", lambda _, shape, __: np.full(shape, np.nan)),
    "full": (1, "fp32", lambda _, shape, numbers: np.full(shape, numbers[0])),
    "arange": (0, "i32", lambda _, shape, __: np.arange(prod(shape)).reshape(shape)),
    "randint": (2, "i32", lambda random, shape, numbers: random.integers(int(numbers[0]), int(numbers[1]), shape)),
}
"""The functions that fill an array: the count of numbers that it takes, the default type, and the function."""

_ARRAY = re.compile(r"(?P<fill>[a-z]+)(?:\((?P<numbers>[^()]*)\))?(?::(?P<dtype>\w+))?(?:\[(?P<shape>[^\[\]]*)\])?")
_NUMBER = re.compile(r"(?P<number>[^:]+?)(?::(?P<dtype>\w+))?")
_FILE = re.compile(r"(?P<path>.*\.npy)(?::(?P<dtype>\w+))?")


@dataclass(frozen=True)
class Hint:
    """The type and the block of an argument before it has a value."""

    dtype: np.dtype[Any] | None = None
    """Of a number, or of the elements."""
    block: tuple[int, ...] = ()
    """Of a descriptor."""
    is_number: bool = False


def hint_of_signature(text: object) -> Hint:
    """Return what a type in Triton's spelling says, such as `*fp16` or `tensordesc<fp16[64, 64]>`."""
    if not isinstance(text, str) or text.strip().startswith("("):
        return Hint()
    # Loads xDSL, which a command line without types of a file does without.
    from tlx_xdsl.frontend.types import parse_argument_type

    type_ = parse_argument_type(text)
    is_pointer = isinstance(type_.element, pointer_type)
    element = type_.element.element_ty if isinstance(type_.element, pointer_type) else type_.element
    return Hint(numpy_dtype(element), type_.block_shape, not is_pointer and not type_.is_descriptor)


def argument_value(
    name: str,
    text: str,
    hint: Hint,
    seed: int,
    sizes: Mapping[str, int] | None = None,
    contents: Contents = "all",
    draw: tuple[int, ...] = (),
) -> Any:
    """The value of the argument `name`; its random numbers depend on the seed, on the name, and on `draw`.

    Shapes and numbers may be expressions over the names of `sizes`. `contents` says which arrays are filled.

    Raises CompilationError for a text that means nothing, and OSError for a file that can't be read.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode()), *draw])
    return _Reader(name, random, sizes or {}, contents).read(text.strip(), hint)


def fitting_value(
    name: str,
    text: str,
    hint: Hint,
    seed: int,
    sizes: Mapping[str, int],
    contents: Contents = "all",
    draw: tuple[int, ...] = (),
) -> Any:
    """The value of an argument, as `argument_value` reads it, of the kind that its type says."""
    value = argument_value(name, text, hint, seed, sizes, contents, draw)
    if hint.is_number and hint.dtype is not None and hint.dtype.kind in "iu" and isinstance(value, float):
        raise CompilationError(f"--arg {name}: expected an integer, found '{text}'")
    if hint.dtype is not None and not hint.is_number and isinstance(value, bool | int | float | np.generic):
        raise CompilationError(f"--arg: '{name}' is an array: give it as in randn[1024,512], found '{text}'")
    return value


class _Reader:
    """Reads one argument."""

    def __init__(self, name: str, random: np.random.Generator, names: Mapping[str, int], contents: Contents):
        self._contents = contents
        self._name = name
        self._random = random
        self._names = names

    def read(self, text: str, hint: Hint) -> Any:
        """Any value."""
        if text.startswith("(") and text.endswith(")"):
            return tuple(self.read(item, Hint()) for item in _items(text[1:-1]))
        if text.startswith("desc(") and text.endswith(")"):
            return self._descriptor(text)
        found = self._array(text, hint)
        if found is None:
            return self._number(text, hint)
        return self._described(found, hint.block, "zero") if hint.block else found

    def _descriptor(self, text: str) -> TensorDescriptor:
        items = _items(text[len("desc(") : -1])
        if not 2 <= len(items) <= 3 or not items[1].startswith("["):
            raise self._error("a descriptor as desc(ARRAY, [64,64]) or desc(ARRAY, [64,64], nan)", text)
        array = self._array(items[0], Hint())
        if array is None:
            raise self._error("an array", items[0])
        return self._described(array, self._sizes(items[1].strip("[]")), items[2] if len(items) == 3 else "zero")

    def _described(self, array: NDArray[Any], block: Sequence[int], padding: str) -> TensorDescriptor:
        try:
            return TensorDescriptor.from_tensor(array, block, padding)
        except InputError as error:
            raise CompilationError(f"--arg {self._name}: {error}") from error

    def _array(self, text: str, hint: Hint) -> NDArray[Any] | None:
        """An array; None for a text that can only be a number."""
        if (match := _FILE.fullmatch(text)) is not None:
            return self._file(match["path"], match["dtype"])
        match = _ARRAY.fullmatch(text)
        if match is None or match["fill"] not in _FILLS:
            return None
        count, default, fill = _FILLS[match["fill"]]
        if match["shape"] is None:
            raise self._error(f"a shape, as in {match['fill']}[64,64]", text)
        shape = self._sizes(match["shape"])
        numbers = [self._float(item) for item in _items(match["numbers"] or "")]
        if len(numbers) != count:
            raise self._error(f"{count or 'no'} numbers for '{match['fill']}'", text)
        dtype = self._dtype(match["dtype"]) or hint.dtype or np.dtype(numpy_dtype(default))
        if self._contents != "all" and (self._contents == "none" or match["fill"] == "empty" or dtype.kind not in "iu"):
            return np.zeros(shape, dtype)
        if match["fill"] == "empty":
            # Loads the interpreter, which notes what is written.
            from tlx_xdsl.runtime.driver.host_values import uninitialized

            return uninitialized(shape, dtype)
        with np.errstate(all="ignore"):
            return fill(self._random, shape, numbers).astype(dtype)

    def _file(self, path: str, dtype: str | None) -> NDArray[Any]:
        array = np.load(Path(path), None if self._contents == "all" else "c", allow_pickle=False)
        wanted = self._dtype(dtype)
        if wanted is None or wanted == array.dtype:
            return array
        if array.dtype.kind != "V" or array.dtype.itemsize != wanted.itemsize:
            raise self._error(f"elements of the type {wanted}", f"{array.dtype} in {path}")
        # numpy's files do not know bf16 and the 8-bit floats by name.
        return array.view(wanted)

    def _number(self, text: str, hint: Hint) -> Any:
        match = _NUMBER.fullmatch(text)
        try:
            number = ast.literal_eval(match["number"] if match else text)
        except (ValueError, SyntaxError):
            number = self._computed(match["number"] if match else text)
        if number is None:
            return None
        if not isinstance(number, bool | int | float):
            raise self._error(EXPECTED, text)
        dtype = self._dtype(match["dtype"] if match else None)
        if dtype is None and hint.is_number and hint.dtype is not None and hint.dtype.kind not in "iu":
            dtype = hint.dtype
        try:
            return number if dtype is None else dtype.type(number)
        except (OverflowError, ValueError) as error:
            raise self._error(f"a number of the type {dtype}", text) from error

    def _dtype(self, name: str | None) -> np.dtype[Any] | None:
        if name is None:
            return None
        if (dtype := numpy_dtype(name)) is None:
            raise self._error("an element type such as fp16, bf16, float32 or i32", name)
        return dtype

    def _sizes(self, text: str) -> tuple[int, ...]:
        sizes = [int(item) if item.isdecimal() else self._computed(item) for item in _items(text)]
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise self._error("sizes such as 512,512", text)
        return tuple(sizes)

    def _computed(self, text: str) -> Any:
        """Return what an expression over the named sizes computes; without any, the text."""
        return evaluate(f"--arg {self._name}", text, self._names) if self._names else text

    def _float(self, text: str) -> float:
        try:
            return float(self._computed(text) if text.isidentifier() and text in self._names else text)
        except ValueError as error:
            raise self._error("a number", text) from error

    def _error(self, expected: str, found: str) -> CompilationError:
        return CompilationError(f"--arg {self._name}: expected {expected}, found '{found}'")


def _items(text: str) -> list[str]:
    """The items between commas that stand in no bracket."""
    items, depth = [""], 0
    for character in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items if item.strip()]
