"""Passes of other packages in the compiler's pipelines.

`after:NAME=PASS` has a pass run after the pass NAME, `before:NAME=PASS` before it. NAME is a pass that the kernel goes
through, `frontend` (the module that the frontend has made) or `end` (the last pass). PASS is the name of a pass, of a
wing (`wings.py`) or of ours, or `module:Class`; options follow in braces: `after:frontend=my-pass{limit=4}`.

At one place, passes run in this order: those that wings place in every compile (`Wing.placed`), wing by wing, and then
those asked for, in the order in which they were given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from tlx_xdsl import wings
from tlx_xdsl.errors import CompilationError, let_through
from tlx_xdsl.text.verify import verify_module

from .registry import all_passes, configured, current_name, meant_pass

START, END = "frontend", "end"
"""Places that every pipeline has."""

_FORM = "expected after:NAME=PASS or before:NAME=PASS"


@dataclass(frozen=True)
class ForeignPass(ModulePass):
    """A placed pass: its failure names it, and the module is verified after it."""

    inner: ModulePass
    origin: str
    """What placed it, as messages say it."""

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.name

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass.

        Raises CompilationError where it fails in any way, or leaves what is no valid module.
        """
        try:
            self.inner.apply(ctx, op)
            verify_module(op)
        except CompilationError as error:
            error.notes = (*error.notes, f"in the pass '{self.name}' ({self.origin})")
            raise
        except Exception as error:  # Code of others may fail in every way.
            let_through(error)
            said = f"{type(error).__name__}: {error}"
            raise CompilationError(f"the pass '{self.name}' ({self.origin}) failed: {said}") from error


@dataclass(frozen=True)
class Placement:
    """A pass of another package, and its place in the pipeline."""

    before: bool
    anchor: str
    made: ForeignPass
    is_asked_for: bool
    """True if the user asked for it, so that a kernel without the anchor is an error."""


def placements(asked: Sequence[str]) -> list[Placement]:
    """The passes that wings place in every compile, and those asked for, in their order.

    Raises CompilationError for a text of another form, a pass that there is not, and options that do not fit it.
    """
    found: list[Placement] = []
    for each in wings.installed():
        for text in each.wing.placed:
            made = wings.guarded(each, lambda text=text, each=each: _placement(text, each.owner, is_asked_for=False))
            found.extend([made] if made is not None else [])
    return [*found, *map(_asked_for, asked)]


def _asked_for(text: str) -> Placement:
    return _placement(text, "asked for", is_asked_for=True)


def _placement(text: str, origin: str, *, is_asked_for: bool) -> Placement:
    where, _, rest = text.partition(":")
    anchor, separator, spec = rest.partition("=")
    if where not in ("after", "before") or not separator or not anchor or not spec:
        raise CompilationError(f"{_FORM}, found '{text}'")
    return Placement(where == "before", current_name(anchor), ForeignPass(_made(spec), origin), is_asked_for)


def _made(text: str) -> ModulePass:
    name, brace, options = text.partition("{")
    if ":" in name:
        cls = _class(name)
        text = f"{cls.name}{brace}{options}"
    else:
        known = all_passes()
        if name not in known:
            raise CompilationError(f"there is no pass '{name}'{meant_pass(name, known)}")
        cls = known[name]()
    try:
        (spec,) = parse_pipeline(text)
    except (ArgSpecParseError, ValueError) as error:
        raise CompilationError(f"expected PASS or PASS{{option=value}}, found '{text}'") from error
    return configured(cls, spec)


def _class(place: str) -> type[ModulePass]:
    """Return the class that `module:Class` names.

    Raises CompilationError where there is none, or none of a pass.
    """
    try:
        cls = wings.attribute(place)
    except (Exception, SystemExit) as error:  # Code of others may fail in every way.
        raise CompilationError(f"the pass '{place}' can't be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, ModulePass)):
        raise CompilationError(f"'{place}' is no pass: expected a class derived from xdsl.passes.ModulePass")
    return cls


def with_placed(passes: tuple[ModulePass, ...], asked: Sequence[str] = ()) -> tuple[ModulePass, ...]:
    """A pipeline with the passes of wings and those asked for.

    What a wing places at a pass that this pipeline does not have is left out.

    Raises CompilationError where one that was asked for names such a place, and as `placements` does.
    """
    found = placements(asked)
    if not found:
        return passes
    names = [START, *(each.name for each in passes), END]
    at: dict[tuple[bool, str], list[ModulePass]] = {}
    for each in found:
        if each.anchor in names:
            at.setdefault((each.before, each.anchor), []).append(each.made)
        elif each.is_asked_for:
            raise CompilationError(
                f"the pass '{each.made.name}' was asked for at '{each.anchor}', which this kernel does not go through: "
                f"expected one of {', '.join(names)}"
            )
    result = [*at.get((True, START), ()), *at.get((False, START), ())]
    for each in passes:
        result += [*at.get((True, each.name), ()), each, *at.get((False, each.name), ())]
    return tuple([*result, *at.get((True, END), ()), *at.get((False, END), ())])


@cache
def identity(asked: tuple[str, ...]) -> str:
    """Return what a compile with these passes is cached by: their texts, and the hashes of the code of each.

    Raises CompilationError as `placements` does, and for a pass whose module has no file.
    """
    modules = (type(each.made.inner).__module__ for each in map(_asked_for, asked))
    texts = [f"{text} {wings.source_digest(module)}" for text, module in zip(asked, modules, strict=True)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
