"""Straight-line kernels, compiled by stock Triton's frontend and by ours, compared after stock's passes.

A kernel without control flow is a list of effects, each with the expressions that it depends on. Two kernels are equal
when these lists are: names, locations, and the order of operations without effects do not count.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.versions import NEWEST, only_on
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module


def reference_version() -> pytest.MarkDecorator:
    """Skip where the installed Triton is not the version whose language we follow."""
    return only_on(NEWEST, "the language is that of")


@dataclass(frozen=True)
class Case:
    """A kernel: its statements, and its arguments' types in Triton's spelling."""

    statements: tuple[str, ...]
    signature: dict[str, str]

    def source(self, index: int) -> str:
        """The kernel's definition."""
        lines = "".join(f"    {statement}\n" for statement in self.statements)
        return f"@triton.jit\ndef kernel{index}({', '.join(self.signature)}):\n{lines}"


@dataclass(frozen=True)
class Verdict:
    """Effects that both frontends make of a case, or their errors."""

    case: Case
    stock: list[str] | str
    ours: list[str] | str

    @property
    def agrees(self) -> bool:
        """True if both refuse the kernel or both make the same of it."""
        if isinstance(self.stock, str) or isinstance(self.ours, str):
            return isinstance(self.stock, str) and isinstance(self.ours, str)
        return self.stock == self.ours

    def __str__(self) -> str:
        return f"{self.case.statements} {self.case.signature}\n  stock: {self.stock}\n  ours:  {self.ours}"


_STOCK = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""
_OURS = """\
import tlx_xdsl as triton
import tlx_xdsl.language as tl
from tlx_xdsl.language.extra import libdevice
"""
_numbers = itertools.count()


def compare(folder: Path, cases: list[Case]) -> list[Verdict]:
    """Compile every case with both frontends; `folder` is for the kernels' files."""
    kernels = "\n".join(case.source(index) for index, case in enumerate(cases))
    stock, ours = _load(folder, _STOCK + kernels), _load(folder, _OURS + kernels)
    return [
        Verdict(case, _stock(getattr(stock, f"kernel{index}"), case), _ours(getattr(ours, f"kernel{index}"), case))
        for index, case in enumerate(cases)
    ]


def disagreements(verdicts: list[Verdict]) -> str:
    """The verdicts that do not agree, for an assertion's message."""
    return "\n".join(str(verdict) for verdict in verdicts if not verdict.agrees)


def _load(folder: Path, source: str) -> ModuleType:
    path = folder / f"against_stock_{next(_numbers)}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Stock:
    """Stock Triton in this process, with one context for all kernels."""

    def __init__(self) -> None:
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend

        self.target = GPUTarget("cuda", 90, 32)
        self.backend = make_backend(self.target)
        self.options = self.backend.parse_options({})
        self.codegen = self.backend.get_codegen_implementation(self.options)
        self.modules = self.backend.get_module_map()
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.backend.load_dialects(self.context)


@functools.cache
def _compiler() -> _Stock:
    return _Stock()


def _stock(kernel, case: Case) -> list[str] | str:
    from triton.compiler import ASTSource

    stock = _compiler()
    try:
        source = ASTSource(kernel, case.signature)
        module = source.make_ir(stock.target, stock.options, stock.codegen, stock.modules, stock.context)
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        return f"{type(error).__name__}: {error}"
    return effects(_canonical(module, stock.context))


def _canonical(module, context) -> str:
    """Run those of stock's passes on TTIR that do something to straight-line code."""
    from triton._C.libtriton import ir, passes

    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "against_stock")
    return str(module)


def _ours(kernel, case: Case) -> list[str] | str:
    from triton._C.libtriton import ir

    try:
        module = build_module(kernel.source, case.signature, {})
    except CompilationError as error:
        return str(error)
    verify_module(module)
    text = print_module(module, profile=profile_for(NEWEST), locations=False)
    context = _compiler().context
    path = Path(kernel.source.filename).with_suffix(".mlir")
    # Stock's frontend leaves the module's attributes to a later stage; `tt-combine` looks at them.
    path.write_text(re.sub(r"^builtin.module attributes \{.*\} \{$", "module {", text, count=1, flags=re.MULTILINE))
    return effects(_canonical(ir.parse_mlir_module(str(path), context), context))


_EFFECTS = re.compile(r"tt\.(load|atomic|elementwise_inline_asm|extern_elementwise)")


def effects(text: str) -> list[str]:
    """The effects of the only function in `text`, with the expressions of their operands."""
    text = re.sub(r" loc\(.*?\)(?=[,)]|$| \{)", "", text, flags=re.MULTILINE)
    header = re.search(r"tt\.func[^\n]*\n", text)
    names = {name: f"argument {index}" for index, name in enumerate(re.findall(r"(%[\w.-]+): ", header[0]))}
    result: list[str] = []
    for line in text[header.end() :].splitlines():
        line = line.strip()
        if line.startswith("tt.return"):
            break
        match = re.match(r"((?:%[\w:.-]+(?:, )?)+) = (.*)", line)
        operation = match[2] if match else line
        operation = re.sub(r"%[\w.#-]+", lambda use: names.get(use[0], use[0]), operation)
        for index, name in enumerate(match[1].split(", ") if match else ()):
            expression = f"({operation}).{index}"
            if len(expression) > 300:
                expression = f"<{hashlib.sha1(expression.encode()).hexdigest()} {operation[:80]}>"
            names[name] = expression
        if match is None or (_EFFECTS.match(operation) and "pure = true" not in operation):
            result.append(operation)
    return result
