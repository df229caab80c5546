"""The C launcher of a kernel for CPUs: a header and a source that need the C library and the kernel's object.

It fills the memory that the object reads (`cpu/codegen/module.py`) as `cpu/runtime/packing.py` does for launches from
Python. C99 and C++11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tlx_xdsl.element_types import BY_NAME
from tlx_xdsl.frontend.types import parse_argument_type
from tlx_xdsl.language.core import dtype
from tlx_xdsl.runtime.bundle.c_launcher import in_comment
from tlx_xdsl.runtime.bundle.c_text import c_names
from tlx_xdsl.version import __version__

from .text import CPU_CHECK, HEADER, PRINT, PRINTS, SOURCE, SVE_CHECK, WORK, WORK_WITH_SCRATCH

if TYPE_CHECKING:
    from ..codegen.host import Host
    from ..codegen.metadata import Metadata, Site

_NO_MEMORY, _WRONG_CPU, _BAD_GRID, _FIRST_ARGUMENT = 1, 2, 3, 4
"""What a launch refuses, by numbers; the last is that of the first argument that has a rule."""

_ALIGNMENT = 64
"""Bytes, of scratch memory: `backend.cpu.metadata.Metadata.scratch_bytes`."""

_CHUNKS = 256
"""Chunks of programs in a launch."""

_CHECKED_FEATURES = ("sse4.2", "avx", "avx2", "fma", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl")
"""Instructions that the launcher looks for: those of the x86-64 psABI's levels that `__builtin_cpu_supports` of GCC 6
and of every newer one, and of clang, knows."""

_PRINTS = {
    "printI64": ("int64_t", "PRId64"),
    "printU64": ("uint64_t", "PRIu64"),
    "printF32": ("float", '".9g"'),
    "printF64": ("double", '".17g"'),
}
"""The type that each function prints, and its format: with so many digits no two numbers look the same."""

_PARTS = ("shape", "strides", "bytes")
"""Suffixes of an argument's name, for the parameters that it becomes."""

_OWN = [
    "programs",
    "plane",
    "memory",
    "refusals",
    "assertions",
    "line",
    "value",
    "memcpy",
    "malloc",
    "free",
    "puts",
    "snprintf",
]
"""What the launcher's code calls by these names, and functions of the C library that it uses."""

_FUNCTIONS = ("launch", "prepare", "work", "error", "run", "scratch_bytes", "programs")
"""Ends of names that begin with the kernel's."""


@dataclass(frozen=True)
class CpuKernel:
    """Description of a compiled kernel for the launcher."""

    about: str
    """The kernel, in a few words."""
    arguments: Sequence[tuple[str, str]]
    """Name and type, in Triton's spelling, of each runtime argument in the order of the kernel's parameters."""
    constants: Mapping[str, Any]
    """What was compiled in."""
    metadata: Metadata
    host: Host


class CpuLauncher:
    """Writes the C of one kernel.

    Raises ValueError for a type that C has no parameter for.
    """

    def __init__(self, kernel: CpuKernel):
        self._kernel = kernel
        self._name = kernel.metadata.name
        taken = {*_OWN, *(f"{self._name}_{each}" for each in (*_FUNCTIONS, *_PRINTS, "printNewline"))}
        names = c_names([name for name, _ in kernel.arguments], parts=_PARTS, taken=taken)
        self._arguments: list[_Argument] = []
        slots = 0
        for (python_name, spelled), name in zip(kernel.arguments, names, strict=True):
            self._arguments.append(_Argument(python_name, spelled, name, slots, is_checked=kernel.metadata.checks))
            slots += len(self._arguments[-1].values)
        self._slots = slots
        if slots != len(kernel.metadata.arguments):
            raise AssertionError(
                f"{self._name} takes {len(kernel.metadata.arguments)} slots, its signature has {slots}"
            )

    def header(self) -> str:
        """The text of the header."""
        known = self._kernel.metadata
        constants = ", ".join(f"{name} = {value}" for name, value in self._kernel.constants.items())
        about = [
            f"{self._kernel.about}, compiled by tlx_xdsl {__version__} for {known.cpu} ({known.triple})"
            + (", with every access checked." if known.checks else "."),
            *([f"Compiled in: {constants}."] if constants else []),
        ]
        return HEADER.substitute(
            name=self._name,
            guard=f"TLX_KERNEL_{self._name}_H",
            about="\n".join(f" * {in_comment(line)}" for line in about),
            arguments="\n".join(f" *   {in_comment(each.described())}" for each in self._arguments) or " *   none",
            parameters=self._parameters(),
            slots=max(1, (3 if known.checks else 1) * self._slots),
            scratch_bytes=known.scratch_bytes,
            alignment=_ALIGNMENT,
        )

    def source(self) -> str:
        """The text of the source."""
        known = self._kernel.metadata
        refusals = {
            0: "no error",
            _NO_MEMORY: f"no memory for {known.scratch_bytes} bytes of scratch",
            _WRONG_CPU: f"the kernel was compiled for {self._cpu()}, which has instructions that this CPU lacks",
            _BAD_GRID: "a grid has up to 2147483647 programs along an axis, and less than 2^63",
        }
        checks = ""
        rules = [rule for each in self._arguments if (rule := each.rule()) is not None]
        for number, (condition, reason) in enumerate(rules, start=_FIRST_ARGUMENT):
            refusals[number] = reason
            checks += f"    if ({condition})\n        return -{number};\n"
        return SOURCE.substitute(
            name=self._name,
            includes="".join(f"#include <{each}.h>\n" for each in self._includes()),
            prints=self._prints(),
            refusals=",\n    ".join(c_string(text) for text in refusals.values()),
            assertions=",\n    ".join(c_string(text) for text in ("no error", *map(_described, known.sites))),
            parameters=self._parameters(),
            cpu_check=self._cpu_check(),
            bad_grid=_BAD_GRID,
            checks=checks,
            chunks=_CHUNKS,
            stores="".join(f"    {line}\n" for each in self._arguments for line in each.stores(self._slots)),
            work=self._work(),
            passed=", ".join(["gridX", "gridY", "gridZ", *(name for each in self._arguments for name in each.names)]),
        )

    def _cpu(self) -> str:
        features = self._kernel.host.features
        sve = f" with SVE of {8 * features.vector_bytes} bits" if features.sve else ""
        return f"{self._kernel.metadata.cpu}{sve}"

    def _parameters(self) -> str:
        grid = ", ".join(f"uint32_t grid{axis}" for axis in "XYZ")
        return ",\n    ".join([grid, *(", ".join(each.parameters) for each in self._arguments)])

    def _work(self) -> str:
        if not self._kernel.metadata.scratch_bytes:
            return WORK.substitute(name=self._name)
        return WORK_WITH_SCRATCH.substitute(name=self._name, alignment=_ALIGNMENT, no_memory=_NO_MEMORY)

    def _printing(self) -> list[str]:
        """The functions of `_PRINTS` that the object calls."""
        return [each for each in _PRINTS if f"{self._name}_{each}" in self._kernel.metadata.symbols]

    def _includes(self) -> list[str]:
        printing = ["inttypes", "stdio"] if self._printing() else []
        sve = ["sys/prctl"] if self._kernel.host.features.sve else []
        return [*printing, *sve, *(["stdlib"] if self._kernel.metadata.scratch_bytes else []), "string"]

    def _prints(self) -> str:
        functions = [
            PRINT.substitute(name=self._name, function=each, type=_PRINTS[each][0], format=_PRINTS[each][1])
            for each in self._printing()
        ]
        return PRINTS.substitute(name=self._name, functions="\n".join(functions)) if functions else ""

    def _cpu_check(self) -> str:
        if (features := self._kernel.host.features).sve:
            return SVE_CHECK.substitute(bytes=features.vector_bytes, wrong_cpu=_WRONG_CPU)
        wanted = [each for each in _CHECKED_FEATURES if self._kernel.host.has(each)]
        if not wanted:
            return ""
        lacks = " ||\n        ".join(f'!__builtin_cpu_supports("{each}")' for each in wanted)
        return CPU_CHECK.substitute(lacks=lacks, wrong_cpu=_WRONG_CPU)


class _Argument:
    """One argument of the kernel, as parameters of the C functions and as slots of 8 bytes."""

    def __init__(self, python_name: str, spelled: str, name: str, slot: int, *, is_checked: bool):
        self._python_name = python_name
        self._spelled = spelled
        self._name = name
        self._slot = slot
        self._is_checked = is_checked
        self._type = parse_argument_type(spelled)
        element = self._type.element
        self._element = element if isinstance(element, dtype) else element.element_ty
        self._is_memory = self._type.is_descriptor or not isinstance(element, dtype)
        self.parameters: list[str] = []
        """Declarations."""
        self.names: list[str] = []
        """Of the parameters."""
        self.values: list[str] = [name]
        """What goes into the slots."""
        if not self._is_memory:
            self._declare(f"{c_type(self._element)} {name}", name)
            return
        is_constant = not isinstance(element, dtype) and element.const
        self._declare(f"{'const ' if is_constant else ''}{c_type(self._element)} *{name}", name)
        if is_checked:
            self._declare(f"size_t {name}_bytes", f"{name}_bytes")
        if rank := len(self._type.block_shape):
            for part, type_ in (("shape", "int32_t"), ("strides", "int64_t")):
                self._declare(f"const {type_} {name}_{part}[{rank}]", f"{name}_{part}")
                self.values += [f"{name}_{part}[{dim}]" for dim in range(rank)]

    def _declare(self, text: str, name: str) -> None:
        self.parameters.append(text)
        self.names.append(name)

    def described(self) -> str:
        """A line for the header."""
        text = f"{self._name}: {self._spelled}"
        if self._name != self._python_name:
            text += f" ({self._python_name} in Python)"
        if self._element.is_floating() and self._element.primitive_bitwidth < 32:
            text += ", as their bits" if self._is_memory else ", as its bits"
        if self._type.is_descriptor:
            text += ", with its shape and strides in elements, outermost dimension first"
        if self._type.divisibility > 1:
            what = "an address" if self._is_memory else "a number"
            text += f", {what} that is a multiple of {self._type.divisibility}"
        if self._is_memory and self._is_checked:
            text += f"; the kernel may touch {self._name}_bytes from there"
        return text

    def rule(self) -> tuple[str, str] | None:
        """Return what a launch refuses, as a condition of C, and why; None where all goes."""
        divisor = self._type.divisibility
        if divisor == 1 or not (self._is_memory or self._element.is_int()):
            return None
        value = f"(uintptr_t){self._name}" if self._is_memory else self._name
        return f"{value} % {divisor} != 0", f"'{self._name}': the kernel was compiled for multiples of {divisor}"

    def stores(self, slots: int) -> list[str]:
        """Statements that fill the slots; with checks, also the addresses that may be touched through each."""
        lines: list[str] = []
        for number, value in enumerate(self.values, start=self._slot):
            lines.append(f"memcpy(&programs->arguments[{number}], &{value}, sizeof {value});")
            if not self._is_checked:
                continue
            first, end = slots + 2 * number, slots + 2 * number + 1
            if self._is_memory and number == self._slot:
                lines.append(f"programs->arguments[{first}] = (uintptr_t){self._name};")
                lines.append(f"programs->arguments[{end}] = (uintptr_t){self._name} + {self._name}_bytes;")
            else:
                lines.append(f"programs->arguments[{end}] = UINT64_MAX;")
        return lines


def c_type(element: dtype) -> str:
    """The type of C; it has none for floats of 8 and 16 bits, which are passed as their bits."""
    found = BY_NAME[element.name]
    return found.c or f"uint{found.bits}_t"


def _described(site: Site) -> str:
    """A place and what is wrong there; without the file's folder, which is of the machine that compiled."""
    place = f"{PurePath(site.file).name}:{site.line}:{site.column}: " if site.file else ""
    return f"{place}{site.message}"


def c_string(text: str) -> str:
    """A literal of C with the bytes of a text in UTF-8."""
    return '"' + "".join(_escaped(byte) for byte in text.encode()) + '"'


def _escaped(byte: int) -> str:
    if byte in b'"\\?':
        # `??/` is a backslash to older compilers.
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
