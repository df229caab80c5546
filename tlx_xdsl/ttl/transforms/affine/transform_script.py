"""`ttl-transform-script`: run a script of MLIR's transform dialect, of the operations that the design document has.

```mlir
transform.sequence {
  %loops = transform.structured.match ops{["affine.for"]}
  %tiled = transform.loop.tile %loops tile_sizes=[4]
  %sched = transform.ttl.schedule_pipeline %tiled
  transform.affine.simplify_bounded_affine_ops %sched
}
```
runs `affine-loop-fusion`, `affine-data-copy-generate`, `ttl-affine-dependence-analysis`,
`ttl-schedule-pipeline{depth=4}` and `ttl-canonicalize`. A handle stands for all `affine.for` of all threads. Tiling
strip-mines the loops of transfers that are scheduled afterwards, so it is done there; two sizes would change the order
of blocks in a circular buffer, which the other thread relies on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.transforms.registry import pass_class

_LINE = re.compile(
    r"(?:(?P<result>%\w+)\s*=\s*)?(?P<op>transform\.[\w.]+)(?:\s+(?P<handle>%\w+))?"
    r'(?:\s+ops\{\["(?P<matched>[\w.]+)"\]\}|\s+tile_sizes\s*=\s*\[(?P<sizes>[\d\s,]+)\])?\s*$'
)
_SIMPLIFY = ("transform.affine.simplify_bounded_affine_ops", "transform.affine.simplify_min_max_affine_ops")
_KNOWN = ("transform.structured.match", "transform.loop.tile", "transform.ttl.schedule_pipeline", *_SIMPLIFY)


@dataclass(frozen=True)
class TransformScriptPass(ModulePass):
    """Run the passes that a script stands for."""

    name = "ttl-transform-script"

    script: str
    """The path of the script."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError, at its line, for what a script can't say here.
        """
        try:
            text = Path(self.script).read_text(encoding="utf-8")
        except OSError as error:
            raise CompilationError(f"the script '{self.script}' can't be read: {error.strerror}") from error
        for each in script_passes(text, self.script):
            each.apply(ctx, op)


def script_passes(text: str, file: str = "<script>") -> list[ModulePass]:
    """The passes that a script stands for, in order.

    Raises CompilationError, at its line, for what a script can't say here.
    """
    found: list[ModulePass] = []
    sizes: dict[str, int | None] = {}
    tiled: tuple[str, _Statement] | None = None
    for each in _statements(text, file):
        if each.op == "transform.structured.match":
            if each.matched != "affine.for":
                raise each.error('expected ops{["affine.for"]}: the loops are all that a handle can stand for')
        elif each.handle not in sizes:
            raise each.error(f"expected a handle that was given before, found {each.handle or 'none'}")
        depth = None if each.handle is None else sizes[each.handle]
        if each.op == "transform.loop.tile":
            if len(each.sizes) != 1 or each.sizes[0] < 1:
                raise each.error(
                    "expected one tile size: two change the order of blocks in a circular buffer, which the other "
                    "thread relies on; write the loops of both threads that way"
                )
            depth, tiled = each.sizes[0], (each.result or "", each)
        elif each.op == "transform.ttl.schedule_pipeline":
            names = ("affine-loop-fusion", "affine-data-copy-generate", "ttl-affine-dependence-analysis")
            found += [pass_class(name)() for name in names]
            options = {} if depth is None else {"depth": depth}
            found.append(pass_class("ttl-schedule-pipeline")(**options))
            depth, tiled = None, None
        elif each.op in _SIMPLIFY:
            found.append(pass_class("ttl-canonicalize")())
        if each.result is not None:
            sizes[each.result] = depth
    if tiled is not None:
        raise tiled[1].error("expected a transform.ttl.schedule_pipeline after it, which strip-mines the loops")
    return found


@dataclass(frozen=True)
class _Statement:
    """A line of a script."""

    op: str
    result: str | None
    handle: str | None
    matched: str | None
    sizes: tuple[int, ...]
    place: SourceLocation
    line: str

    def error(self, message: str) -> CompilationError:
        """The error at this line."""
        return CompilationError(f"'{self.op}': {message}", self.place, source_line=self.line)


def _statements(text: str, file: str) -> Iterator[_Statement]:
    """The lines in the braces of a `transform.sequence`."""
    lines = [
        (number, line, stripped)
        for number, line in enumerate(text.splitlines(), 1)
        if (stripped := line.partition("//")[0].strip())
    ]
    outer = [stripped for _, _, stripped in (*lines[:1], *lines[-1:])]
    if len(lines) < 2 or not re.fullmatch(r"transform\.sequence\s*\{", outer[0]) or outer[1] != "}":
        raise CompilationError("expected 'transform.sequence {', operations line by line, and '}'",
                               SourceLocation(file, lines[0][0] if lines else 1, 1))  # fmt: skip
    for number, line, stripped in lines[1:-1]:
        place = SourceLocation(file, number, line.index(stripped) + 1)
        match = _LINE.fullmatch(stripped)
        if match is None or match["op"] not in _KNOWN:
            listed = ", ".join(_KNOWN)
            raise CompilationError(f"expected one of {listed}", place, source_line=line)
        sizes = tuple(int(each) for each in (match["sizes"] or "").split(",") if each.strip())
        yield _Statement(match["op"], match["result"], match["handle"], match["matched"], sizes, place, line)
