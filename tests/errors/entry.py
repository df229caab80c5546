"""One wrong kernel, and what the compiler prints about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.compilation import Specialization, compile_text

MARK = "  # error"
"""What stands at the end of the line on which the error must be."""
FILE = "kernel.py"
"""The name that the page shows for every example's file."""

TYPES: Mapping[str, Any] = {
    "x": "*fp32",
    "y": "*fp32",
    "n": "i32",
    "f": "fp32",
    "tiles": "tensordesc<fp16[64, 64]>",
}
"""The types of arguments, by their names: those of the examples that do not say otherwise."""


@dataclass(frozen=True)
class Entry:
    """A wrong kernel: its last function is what is compiled."""

    title: str
    marked: str
    """The source; one line ends with `MARK`. `tl`, `tlx` and `tlx_xdsl` are imported already."""
    why: str
    """Why it is wrong and what to write instead, in Markdown."""
    types: Mapping[str, Any] = field(default_factory=lambda: TYPES)
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    target: str = "sm_90a"

    @property
    def source(self) -> str:
        """The source as it is compiled and shown."""
        return self.marked.strip("\n").replace(MARK, "") + "\n"

    @property
    def line(self) -> int:
        """The line on which the error must be."""
        return next(at for at, text in enumerate(self.marked.strip("\n").splitlines(), 1) if text.endswith(MARK))

    def error(self, directory: Path) -> tlx_xdsl.CompilationError | None:
        """What compiling the kernel raises; None when it compiles."""
        path = directory / FILE
        path.write_text(self.source, encoding="utf-8")
        names: dict[str, Any] = {"tl": tl, "tlx": tlx, "tlx_xdsl": tlx_xdsl, "__name__": "kernel"}
        exec(compile(self.source, path, "exec", dont_inherit=True), names)
        kernel = [value for value in names.values() if isinstance(value, tlx_xdsl.Kernel)][-1]
        parameters = kernel.source.signature.parameters
        types = {name: type_ for name, type_ in self.types.items() if self.types is not TYPES or name in parameters}
        try:
            compile_text(kernel.source, Specialization(types, self.constexprs, self.target))
        except tlx_xdsl.CompilationError as error:
            return error
        return None

    def printed(self, directory: Path) -> str:
        """What a command line prints about the kernel, with `FILE` for the path of its file."""
        return str(self.error(directory)).replace(str(directory / FILE), FILE)


@dataclass(frozen=True)
class Topic:
    """A chapter of the page."""

    title: str
    introduction: str
    entries: tuple[Entry, ...]
