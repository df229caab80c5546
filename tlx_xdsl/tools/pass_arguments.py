"""The ways to name passes on the command line of `tlx-opt`, brought to one.

xDSL writes `-p a,b{x=1}`; MLIR writes `--a --b="x=1"` or `--pass-pipeline='builtin.module(a,tt.func(b{x=1}))'`.
Whatever is given becomes one list of passes, in the order of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from tlx_xdsl.errors import CompilationError

PASSES = "--passes"


def collect_passes(arguments: Sequence[str], known: Collection[str]) -> list[str]:
    """`arguments` with every way of naming passes joined into one `--passes SPEC`, which comes last.

    Raises CompilationError for a pipeline text that is malformed.
    """
    rest: list[str] = []
    passes: list[str] = []
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        name, separator, value = argument.partition("=")
        position += 1
        if name in ("-p", PASSES, "--pass-pipeline", "-pass-pipeline"):
            if not separator:
                value = arguments[position] if position < len(arguments) else ""
                position += 1
            passes.append(_flatten(value) if "pipeline" in name else value)
        elif argument.startswith("-p") and argument[2:3].isalpha() and not argument.startswith("-pass"):
            passes.append(argument[2:])
        elif (spelled := name.lstrip("-")) in known and name.startswith("-"):
            options = value.strip().strip("{}").strip()
            passes.append(f"{spelled}{{{options}}}" if options else spelled)
        else:
            rest.append(argument)
    joined = ",".join(text for text in passes if text.strip())
    return [*rest, PASSES, joined] if joined else rest


def _flatten(text: str) -> str:
    """The passes of `anchor(a,b{x=1},anchor(c))`: ours all run on the module, so the anchors are only checked."""
    parts: list[str] = []
    depth = 0
    for piece in re.findall(r"\{[^}]*\}|[\w.-]+\s*\(|\)|,|[^(){},]+", text):
        if piece.endswith("("):
            depth += 1
        elif piece == ")":
            depth -= 1
            if depth < 0:
                break
        elif piece.startswith("{") and parts:
            parts[-1] += piece
        elif piece != "," and piece.strip():
            parts.append(piece.strip())
    if depth:
        raise CompilationError(f"--pass-pipeline: the parentheses of '{text}' do not match")
    return ",".join(parts)
