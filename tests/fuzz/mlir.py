"""Damaged IR for tlx-opt: up to three mutations of a chunk of our own tests, half of them with one to three passes."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.fuzz.pool import Ending, report
from tlx_xdsl.tools.opt.main import main as tlx_opt
from tlx_xdsl.transforms.registry import all_passes

CHECKS = Path(__file__).parents[1] / "filecheck"
_SEPARATOR = re.compile(r"^// -----.*\n", re.MULTILINE)
_TOKEN = re.compile(r'[%#!@^]?[\w.$-]+|"[^"\n]*"|->|\S')
_NUMBER = re.compile(r"-?\d+")
EXTREMES = ("0", "-1", "1", "3", "63", "64", "65", "4294967296", "9223372036854775807", "-9223372036854775808", "nan")
WORDS = (
    "", "{", "}", "(", ")", "<", ">", "[", "]", "loc(unknown)", "none", "unit", "true", "dense<1>", "i1", "i128",
    "index", "f8E5M2", "tensor<4xf32>", "tensor<*xf32>", "memref<4xf32>", "!tt.ptr<f32>", "()", "-> ()", "f16",
    "array<i32: 1>", "#ttg.shared_memory", "%arg0", "%0", "@f", "^bb0", "attributes {x = #a}", "tt.return",
    '"tt.load"', "0x7FC00000",
)  # fmt: skip
LOCATED = re.compile(r"^\S.*?:\d+(:\d+)?: error: ")


@cache
def texts() -> list[str]:
    """The chunks of our own tests, without what FileCheck reads."""
    found: list[str] = []
    for path in sorted(CHECKS.rglob("*.mlir")):
        if "Inputs" in path.parts:
            continue
        for chunk in _SEPARATOR.split(path.read_text(encoding="utf-8")):
            text = "\n".join(line for line in chunk.splitlines() if not line.lstrip().startswith("//"))
            if text.strip() and len(text) < 12_000:
                found.append(text + "\n")
    return found


def damaged(text: str, choice: random.Random) -> str:
    """`text` after one mutation."""
    lines = text.splitlines(keepends=True)
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    token = choice.choice(tokens)
    match choice.choice((0, 0, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8)):
        case 0:
            new = choice.choice(tokens)[0]
        case 1:
            new = choice.choice(WORDS)
        case 2:
            new = choice.choice(["", token[0] * 2, f"{token[0]} {token[0]}"])
        case 3:
            numbers = list(_NUMBER.finditer(text)) or tokens
            token, new = choice.choice(numbers), choice.choice(EXTREMES)
        case 4:
            new = choice.choice(list(_TOKEN.finditer(choice.choice(texts()))))[0]
        case 5:
            at = choice.randrange(len(lines))
            return "".join(lines[:at] + lines[at + 1 :])
        case 6:
            at, other = choice.randrange(len(lines)), choice.randrange(len(lines))
            lines.insert(at, lines[other])
            return "".join(lines)
        case 7:
            at = choice.randrange(len(lines))
            lines.insert(at, choice.choice(choice.choice(texts()).splitlines(keepends=True)))
            return "".join(lines)
        case _:
            at = choice.randrange(len(text))
            return choice.choice([text[:at], text[:at] + chr(choice.randrange(1, 256)) + text[at + 1 :]])
    return text[: token.start()] + new + text[token.end() :]


def case(number: int) -> tuple[str, list[str]]:
    """The text and the passes of a number."""
    choice = random.Random(number)
    text = choice.choice(texts())
    passes = choice.choices(sorted(all_passes()), k=choice.randint(1, 3)) if choice.random() < 0.5 else []
    # Passes see what is still valid only: some of their texts are not damaged at all.
    for _ in range(choice.choice((0, 1, 1, 2) if passes else (1, 1, 2, 3))):
        text = damaged(text, choice)
    return text, passes


def trial(number: int) -> Ending:
    """Run tlx-opt in this process on the text of a number."""
    text, passes = case(number)
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "damaged.mlir")
        Path(path).write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = tlx_opt([path, *(["-p", ",".join(passes)] if passes else [])])
    return judged(status, err.getvalue())


def judged(status: int, said: str) -> Ending:
    """Judge a command by its exit status and its output."""
    errors = [line for line in said.splitlines() if re.search(r"(^|: )error: ", line)]
    if status == 0:
        return Ending("ok")
    if "internal error" in said:
        return Ending("internal", said)
    if not errors or "Traceback" in said:
        return Ending("traceback", said)
    return Ending("located" if all(map(LOCATED.match, errors)) else "unlocated", said)


def show(number: int) -> str:
    """The input of a number."""
    text, passes = case(number)
    return f"{text}--- passes: {','.join(passes) or 'none'}"


if __name__ == "__main__":
    sys.exit(report("mlir", trial, show))
