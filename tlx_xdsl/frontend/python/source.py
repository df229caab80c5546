"""The Python source of a kernel: its syntax tree, parameters, the names that it can see, and the types of arguments.

xDSL is not loaded for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CellType
from typing import Any, TypeAlias

from tlx_xdsl.annotations import annotated_signature, text_of
from tlx_xdsl.element_types import SPELLINGS
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.language.core import LIBRARY_MARK, constexpr
from tlx_xdsl.text.profiles import ascii_name

_MARIMO_CELL = "__marimo__cell_"
"""What the file names of marimo's cells have in them, and no others (marimo._ast.compiler)."""


@dataclass(frozen=True)
class Fixed:
    """A compile-time value within a tuple of runtime arguments."""

    value: Any


Signature: TypeAlias = "str | Fixed | tuple[Signature, ...]"
"""The type of an argument: a text such as `*fp16`, or a tuple of types (which `"(*fp16, i32)"` is too)."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel."""

    name: str
    is_constexpr: bool
    default: Any
    """`inspect.Parameter.empty` when there is none."""
    node: ast.arg
    is_variadic: bool = False
    """True if this is the `*args` of the function."""
    number_type: str | None = None
    """The type of numbers that the annotation names, in Triton's spelling: `tl.float16` and `"i64"` do."""
    takes_ones: bool = True
    """True if a launch makes an integer that is 1 a constant, as Triton does: most of them are strides."""
    takes_alignment: bool = True
    """True if a launch says of a number or an address that it is a multiple of 16."""


@dataclass(frozen=True)
class KernelSource:
    """A kernel, or a function that kernels call, as it was written."""

    fn: Callable[..., Any]
    noinline: bool = False
    """True if calls stay calls."""
    passes: tuple[str, ...] = ()
    """Passes of other packages that every compile of the kernel has, as `after:NAME=PASS` (`transforms/placed.py`)."""
    unspecialized: frozenset[int | str] = frozenset()
    """Parameters, by name or position, of whose values a launch says nothing (`do_not_specialize`)."""
    unaligned: frozenset[int | str] = frozenset()
    """Parameters of whose values a launch does not say that 16 divides them (`do_not_specialize_on_alignment`)."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.fn.__name__

    @property
    def symbol(self) -> str:
        """The name of the kernel in text and binaries."""
        return ascii_name(self.name)

    @property
    def is_library(self) -> bool:
        """Say whether the function is a part of the language: users are not shown its insides."""
        return hasattr(self.fn, LIBRARY_MARK)

    @cached_property
    def filename(self) -> str:
        """The file that defines the function: as Python knows it, and of a cell of marimo its notebook."""
        return self._notebook[0] if self._notebook else self.fn.__code__.co_filename

    @cached_property
    def place(self) -> SourceLocation:
        """The function's first line in its file, decorators included."""
        moved = self._notebook[1] if self._notebook else 0
        return SourceLocation(self.filename, self.fn.__code__.co_firstlineno + moved)

    @cached_property
    def _notebook(self) -> tuple[str, int, str] | None:
        """The notebook of a cell of marimo, how many lines later the function stands there, and what indents it there.

        marimo gives each cell a file name of its own, with lines from 1. None where the function has no cell, or where
        its notebook does not hold it: it may not be saved yet.
        """
        file, code = self.fn.__globals__.get("__file__"), self.fn.__code__
        if _MARIMO_CELL not in code.co_filename or not isinstance(file, str):
            return None
        definition = re.compile(rf"^([ \t]*)def {code.co_name}\(", re.MULTILINE)
        try:
            notebook = Path(file).read_text(encoding="utf-8")
            lines, first_line = inspect.getsourcelines(self.fn)
        except (OSError, UnicodeDecodeError):
            return None
        cell = "".join(lines)
        here, there = definition.search(cell), list(definition.finditer(notebook))
        if here is None or len(there) != 1:
            return None
        line = notebook.count("\n", 0, there[0].start()) + 1 - cell.count("\n", 0, here.start())
        return file, line - first_line, there[0][1].removesuffix(here[1])

    @cached_property
    def _lines(self) -> tuple[list[str], int]:
        try:
            return inspect.getsourcelines(self.fn)[0], self.place.line
        except OSError as error:
            raise CompilationError(
                f"the source of '{self.name}' is not available: a kernel must be defined in a file or a notebook cell",
                self.place,
            ) from error
        except (SyntaxError, tokenize.TokenError) as error:
            raise self._changed() from error

    def _changed(self) -> CompilationError:
        """The error that the file does not hold the function any more: Python reads it again for its source."""
        return CompilationError(
            f"the source of '{self.name}' is not here any more: the file has changed since it was imported",
            self.place,
        )

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The function's syntax tree, with the line numbers and columns of the file."""
        lines, first_line = self._lines
        text = "".join(lines)
        # An indented definition is parsed in a block, so that nothing in it moves, lines within strings neither.
        wrapper = "if True:\n" if text[:1].isspace() else ""
        try:
            module = ast.parse(wrapper + text)
        except SyntaxError as error:
            if _is_lambda(self.fn):
                # Its lines need not be whole statements.
                raise self._not_a_function() from error
            raise self._changed() from error
        if _is_lambda(self.fn):
            raise self._not_a_function()
        # From Python 3.13 on a file that has changed may give any line, such as a comment.
        node = next(iter(module.body), None)
        if isinstance(node, ast.If) and wrapper:
            node = node.body[0]
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != self.fn.__code__.co_name:
            raise self._changed()
        ast.increment_lineno(module, first_line - 1 - (1 if wrapper else 0))
        if isinstance(node, ast.AsyncFunctionDef):
            raise self.error(node, f"a kernel must be a plain function, '{self.name}' is an 'async def'")
        return node

    @cached_property
    def text(self) -> str:
        """The function as it is written, without its decorators."""
        lines, first_line = self._lines
        return "".join(lines[self.tree.lineno - first_line :])

    def _not_a_function(self) -> CompilationError:
        lines, first_line = self._lines
        line = lines[0].rstrip("\n")
        place = SourceLocation(self.filename, first_line, len(line) - len(line.lstrip()) + 1)
        return CompilationError("a kernel must be a function made by 'def', found a lambda", place, source_line=line)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The function's parameters as Python knows them."""
        return annotated_signature(self.fn)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in order.

        Raises CompilationError for those that no kernel can have, and at a constexpr that is not to be specialised: it
        always is a part of the kernel.
        """
        arguments = self.tree.args
        nodes = {node.arg: node for node in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        if arguments.vararg is not None:
            nodes[arguments.vararg.arg] = arguments.vararg
        result: list[Parameter] = []
        for at, (name, parameter) in enumerate(self.signature.parameters.items()):
            if parameter.kind is parameter.VAR_KEYWORD:
                raise self.error(self.tree, f"'{self.name}' can't take '**{name}': give each argument a name")
            variadic = parameter.kind is parameter.VAR_POSITIONAL
            is_constexpr = says_constexpr(parameter.annotation)
            left_out, unaligned = (not chosen.isdisjoint((at, name)) for chosen in (self.unspecialized, self.unaligned))
            if is_constexpr and (left_out or unaligned):
                raise self.error(
                    nodes[name],
                    f"{name} marked as constexpr and listed in do_not_specialize/do_not_specialize_on_alignment: "
                    "leave one of them out",
                )
            type_ = None if is_constexpr else _number_type(parameter.annotation)
            takes_ones = not (is_constexpr or left_out or type_)
            result.append(
                Parameter(
                    name, is_constexpr, parameter.default, nodes[name], variadic, type_, takes_ones,
                    not (left_out or unaligned),
                )
            )  # fmt: skip
        return tuple(result)

    @cached_property
    def _closure(self) -> dict[str, Any]:
        cells = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        return {name: cell.cell_contents for name, cell in cells if cell != _EMPTY_CELL}

    def lookup(self, name: str) -> tuple[bool, Any]:
        """The object that the function sees under `name` outside of itself: (True, object) or (False, None)."""
        if name in self._closure:
            return True, self._closure[name]
        if name in self.fn.__globals__:
            return True, self.fn.__globals__[name]
        return False, None

    def visible_names(self) -> set[str]:
        """Names that the function sees outside of itself."""
        return set(self.fn.__globals__) | set(self.fn.__code__.co_freevars)

    def location(self, node: ast.AST) -> SourceLocation:
        """The location of `node`; columns count characters from 1."""
        line = getattr(node, "lineno", self.place.line)
        column = getattr(node, "col_offset", 0)
        indent = self._notebook[2] if self._notebook else ""
        text = self._line(line)
        if text is not None and not text.isascii():
            # Python counts bytes of UTF-8.
            column = len(text.removeprefix(indent).encode()[:column].decode(errors="ignore"))
        return SourceLocation(self.filename, line, len(indent) + column + 1)

    def _line(self, number: int) -> str | None:
        """A line of the function, by its number in the file."""
        lines, first_line = self._lines
        index = number - first_line
        indent = self._notebook[2] if self._notebook else ""
        return indent + lines[index].rstrip("\n") if 0 <= index < len(lines) else None

    def error(self, node: ast.AST, message: str, notes: tuple[str, ...] = ()) -> CompilationError:
        """The error `message` at `node`, with its source line."""
        location = self.location(node)
        return CompilationError(message, location, source_line=self._line(location.line), notes=notes)


def _is_lambda(fn: Callable[..., Any]) -> bool:
    return fn.__code__.co_name == "<lambda>"


_EMPTY_CELL = CellType()
"""Equal to the cell of a name that has no value yet."""


def says_constexpr(annotation: Any) -> bool:
    """Say whether an annotation says `constexpr`, as an object or as text."""
    if (text := text_of(annotation)) is not None:
        return text.split(".")[-1] == "constexpr"
    return annotation is constexpr or getattr(annotation, "__qualname__", None) == "constexpr"


def _number_type(annotation: Any) -> str | None:
    name = text_of(annotation) or getattr(annotation, "name", None)
    return SPELLINGS.get(name.rsplit(".", 1)[-1]) if isinstance(name, str) else None


def construct(node: ast.AST) -> str:
    """The display name of a construct of Python."""
    words = {
        "FunctionDef": "a nested function",
        "AsyncFunctionDef": "an async function",
        "AsyncFor": "'async for'",
        "AsyncWith": "'async with'",
        "ClassDef": "a class",
        "TryStar": "'try'",
        "Try": "'try'",
        "Raise": "'raise'",
        "Break": "'break' (let the loop's condition, or a mask, say when it is done)",
        "Continue": "'continue' (put the rest of the loop's body under an 'if')",
        "Import": "'import'",
        "ImportFrom": "'import'",
        "Global": "'global'",
        "Nonlocal": "'nonlocal'",
        "Delete": "'del'",
        "Lambda": "a lambda",
        "SetComp": "a set comprehension",
        "DictComp": "a dictionary comprehension",
        "Set": "a set",
        "Dict": "a dictionary",
        "MatMult": "'@' (use tl.dot or tlx.async_dot)",
        "Subscript": "an item",
        "Attribute": "an attribute",
        "Match": "'match'",
        "While": "'while'",
        "NamedExpr": "':='",
        "Await": "'await'",
        "Yield": "'yield'",
        "YieldFrom": "'yield'",
        "Slice": "a slice",
    }
    name = type(node).__name__
    return words.get(name, f"'{name}'")
