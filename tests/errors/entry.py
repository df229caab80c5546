"""One wrong kernel, and what the compiler or the interpreter prints about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret_source
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.tools.launch_line.launches import Hint, argument_value

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
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The values of a kernel that compiles, as `tlx run --arg` takes them: the error is what it does when it runs."""
    grid: int = 1
    cluster: int = 1
    """CTAs of a cluster."""

    @property
    def command(self) -> str | None:
        """The command line that gives the error; None for one of compiling."""
        if not self.arguments:
            return None
        values = "".join(f" --arg {name}={text!r}" for name, text in self.arguments.items())
        cluster = f" --cluster {self.cluster}" if self.cluster > 1 else ""
        target = f" --target {self.target}" if self.target != "sm_90a" else ""
        return f"tlx run {FILE}:kernel --grid {self.grid}{cluster}{target}{values}".replace("'", '"')

    @property
    def source(self) -> str:
        """The source as it is compiled and shown."""
        return self.marked.strip("\n").replace(MARK, "") + "\n"

    @property
    def line(self) -> int:
        """The line on which the error must be."""
        return next(at for at, text in enumerate(self.marked.strip("\n").splitlines(), 1) if text.endswith(MARK))

    def error(self, directory: Path) -> tlx_xdsl.CompilationError | None:
        """Return the error that compiling the kernel raises; None when it compiles."""
        path = directory / FILE
        path.write_text(self.source, encoding="utf-8")
        names: dict[str, Any] = {"tl": tl, "tlx": tlx, "tlx_xdsl": tlx_xdsl, "__name__": "kernel"}
        exec(compile(self.source, path, "exec", dont_inherit=True), names)
        kernel = [value for value in names.values() if isinstance(value, tlx_xdsl.Kernel)][-1]
        if self.arguments:
            return self._fault(kernel)
        parameters = kernel.source.signature.parameters
        types = {name: type_ for name, type_ in self.types.items() if self.types is not TYPES or name in parameters}
        try:
            compile_text(kernel.source, Specialization(types, self.constexprs, self.target))
        except tlx_xdsl.CompilationError as error:
            return error
        return None

    def _fault(self, kernel: tlx_xdsl.Kernel) -> tlx_xdsl.CompilationError | None:
        values = {name: argument_value(name, text, Hint(), 0) for name, text in self.arguments.items()}
        try:
            options = Options(target=self.target, cluster=(self.cluster, 1, 1))
            interpret_source(kernel.source, self.grid, values | dict(self.constexprs), options)
        except tlx_xdsl.CompilationError as error:
            return error
        return None

    def printed(self, directory: Path) -> str:
        """Return the text that a command line prints about the kernel, with `FILE` for the path of its file."""
        return str(self.error(directory)).replace(str(directory / FILE), FILE)


@dataclass(frozen=True)
class Topic:
    """A chapter of the page."""

    title: str
    introduction: str
    entries: tuple[Entry, ...]
