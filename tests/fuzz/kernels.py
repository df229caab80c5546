"""Damaged kernels, for the frontend and the passes: one to three mutations of a kernel of the examples, or of a random
one, compiled to TTIR and TTGIR by `tlx compile`."""

from __future__ import annotations

import ast
import contextlib
import io
import random
import re
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.mlir import judged
from tests.fuzz.pool import Ending, report
from tests.oracle import fuzz
from tlx_xdsl.tools.tlx import main as tlx

EXAMPLES = Path(__file__).parents[2] / "examples"
_TOKEN = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*|\d+\.?\d*|[-+*/%&|^<>=!]=?|[()\[\],:]")
WORDS = (
    "tl.zeros((16, 16), tl.float32)", "tl.arange(0, 64)", "tl.program_id(0)", "None", "True", "-1", "0", "3", "2**40",
    "1.5", "'text'", "(1, 2)", "[]", "lambda x: x", "tl.float16", "tl.load", "tlx.local_alloc((64, 64), tl.float16, 2)",
    "tlx.thread_id(0)", "tl.constexpr(4)", "float('nan')", "x", "n", "[...]", "tl.dot", "tlx", "tl", "*", "**", "//",
)  # fmt: skip
STATEMENTS = (
    "return", "return 1", "break", "continue", "pass", "x = x", "for i in range(10):", "while True:", "if n > 1:",
    "else:", "with tlx.async_tasks():", "with tlx.async_task('default'):", "assert n", "del x", "x: tl.int32 = 3",
    "tl.static_assert(False)", "tl.device_print('x', 1)", "raise ValueError", "yield 1", "import os", "n += 1",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A file, and the lines of a kernel in it."""

    text: str
    kernel: str
    first: int
    last: int


@cache
def examples() -> list[Source]:
    """The kernels of the examples."""
    found: list[Source] = []
    for path in sorted(EXAMPLES.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "TLX_COMPILE" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and f'"{node.name}"' in text.partition("TLX_COMPILE")[2]:
                found.append(Source(text, node.name, node.lineno, node.end_lineno or node.lineno))
    return found


def generated(number: int) -> Source:
    """A random kernel."""
    made = fuzz.program(number)
    types = {name: value for name, value in made.arguments.items() if isinstance(value, str)}
    constants = {name: value for name, value in made.arguments.items() if not isinstance(value, str)}
    lines = made.text.replace("@triton.jit", "@tlx_xdsl.jit").splitlines()
    lines = [line for line in lines if not line.startswith("@case(")]
    head = ["import tlx_xdsl", "import tlx_xdsl.language as tl", "import tlx_xdsl.language.tlx as tlx", "GLOBAL = 5"]
    compiled = {made.name: {"signature": types, "constexprs": constants}}
    text = "\n".join([*head, *lines, f"TLX_COMPILE = {compiled!r}"]) + "\n"
    first = text[: text.index(f"def {made.name}(")].count("\n") + 1
    return Source(text, made.name, first, text.count("\n") - 1)


def damaged(source: Source, choice: random.Random) -> str:
    """The file after one to three mutations of its kernel."""
    lines = source.text.splitlines()
    before, body, after = lines[: source.first], lines[source.first : source.last], lines[source.last :]
    for _ in range(choice.choice((1, 1, 2, 3))):
        body = mutated(body, choice)
    return "\n".join([*before, *body, *after]) + "\n"


def mutated(body: list[str], choice: random.Random) -> list[str]:
    """The lines after one mutation."""
    body = list(body) or [""]
    at = choice.randrange(len(body))
    match choice.randrange(8):
        case 0:
            del body[at]
        case 1:
            body.insert(at, body[choice.randrange(len(body))])
        case 2:
            indent = body[at][: len(body[at]) - len(body[at].lstrip())]
            body.insert(at, indent + choice.choice(STATEMENTS))
        case 3:
            body[at] = body[at].replace("    ", "", 1) if choice.random() < 0.5 else "    " + body[at]
        case _:
            tokens = list(_TOKEN.finditer(body[at]))
            if tokens:
                token = choice.choice(tokens)
                others = [match[0] for line in body for match in _TOKEN.finditer(line)]
                new = choice.choice((choice.choice(others), choice.choice(WORDS), "", choice.choice(others)))
                body[at] = body[at][: token.start()] + new + body[at][token.end() :]
    return body


def case(number: int) -> tuple[str, str]:
    """The file and the kernel of a number."""
    choice = random.Random(number)
    source = choice.choice(examples()) if choice.random() < 0.6 else generated(choice.randrange(10_000))
    return damaged(source, choice), source.kernel


def trial(number: int) -> Ending:
    """Compile the kernel of a number in this process."""
    text, kernel = case(number)
    err = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{number}.py"
        path.write_text(text, encoding="utf-8")
        command = ["compile", f"{path}:{kernel}", "--emit", "ttir,ttgir", "--triton-version", "3.9", "-q", "-o", folder]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            status = tlx(command)
    sys.modules.pop(f"damaged{number}", None)
    return judged(status, err.getvalue())


def show(number: int) -> str:
    """The file of a number."""
    return case(number)[0]


if __name__ == "__main__":
    sys.exit(report("kernels", trial, show))
