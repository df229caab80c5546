"""The ways to name passes on the command line of `tlx-opt`, brought to one.

xDSL writes `-p a,b{x=1}`; MLIR writes `--a --b="x=1"` or `--pass-pipeline='builtin.module(a,tt.func(b{x=1}))'`.
Whatever is given becomes one list of passes, in the order of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.transforms.registry import configured, meant_pass

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
    joined = _quoted(",".join(text for text in passes if text.strip()))
    return [*rest, PASSES, joined] if joined else rest


def _quoted(text: str) -> str:
    """`text` with quotes around the values of options that have a colon, such as `cuda:90`: xDSL has no such word."""
    return _STRING_OR_VALUE.sub(lambda found: found[0] if found[0].startswith('"') else f'"{found[0]}"', text)


_STRING_OR_VALUE = re.compile(r'"(?:\\.|[^"\\])*"|(?<==)[\w./+-]*:[\w.:/+-]*')


def unknown_argument(argument: str, known: Collection[str]) -> CompilationError:
    """The error for an option that is none, and no pass either."""
    return CompilationError(
        f"there is no option and no pass '{argument}'{meant_pass(argument.lstrip('-'), known, '--')}"
    )


def pipeline(text: str, known: Mapping[str, Callable[[], type[ModulePass]]]) -> PassPipeline:
    """The passes that `a,b{x=1}` names.

    Raises CompilationError for a text of another form, a pass that there is not, and options that do not fit it.
    """
    try:
        specs = tuple(parse_pipeline(text))
    except ArgSpecParseError as error:
        raise CompilationError(f"{PASSES}: {str(error).splitlines()[-1].strip()}") from error
    for spec in specs:
        if spec.name not in known:
            meant = meant_pass(spec.name, known) or "; --help lists them"
            raise CompilationError(f"there is no pass '{spec.name}'{meant}")
    return PassPipeline(tuple(configured(known[spec.name](), spec) for spec in specs))


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
