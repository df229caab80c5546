"""Going through the pipeline step by step: look at the module, change its text, and go on from there.

    step = tlx_xdsl.first_step(kernel, signature, constexprs)
    step = step.to("tlx-rewrite-local-alias")
    print(step.diff())
    step = step.edited(step.text.replace("addi", "muli"))
    print(step.finish().ttgir)

A step never changes: every move gives a new one, and the old one can be used again. This suits notebooks, whose cells
run again when what they use has changed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.analysis.storage_map import StorageMap
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import Signature
from tlx_xdsl.grid import Grid
from tlx_xdsl.text.located import LocatedLine, located_lines
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import Profile, profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import is_plain
from tlx_xdsl.transforms.registry import current_name

from .driver.compilation import Specialization, frontend_module, passes_for, text_for_triton
from .driver.stages import Stage, changes, unified_diff
from .simulate.interpret import Interpretation, interpret_module, source_of_kernel
from .simulate.options import Options

if TYPE_CHECKING:
    from .show.pages import Page

EDITED = "edited"
"""Name of a step whose text was given by hand."""


@dataclass(frozen=True)
class Step(Stage):
    """The module after one pass, and the passes that are still to come."""

    passes: tuple[ModulePass, ...] = field(repr=False)
    """The passes that are still to run."""
    profile: Profile | None = field(repr=False)
    """The Triton version that the text is for; our own spelling without one."""
    plain: bool
    """True if stock Triton's own passes take over after ours."""
    before: Step | None = field(repr=False)
    """The step before; None for the frontend's."""

    @property
    def remaining(self) -> tuple[str, ...]:
        """Names of the passes that are still to run, in order."""
        return tuple(each.name for each in self.passes)

    @property
    def path(self) -> tuple[Step, ...]:
        """All steps up to this one, the frontend's first."""
        return (*(self.before.path if self.before is not None else ()), self)

    def module(self) -> ModuleOp:
        """The module, read anew from the text: what is done to it does not change the step."""
        return parse_module(self.printed, filename=self.name)

    # --- going on ------------------------------------------------------------------------------------------------

    def next(self) -> Step:
        """The step after the next pass.

        Raises CompilationError, located in the kernel, when the pass refuses the module, and when there is none left.
        """
        if not self.passes:
            raise CompilationError(f"no pass is left to run after '{self.name}'")
        module, (first, *rest) = self.module(), self.passes
        first.apply(make_context(), module)
        verify_module(module)
        return Step(first.name, print_module(module), tuple(rest), self.profile, self.plain, self)

    def to(self, name: str) -> Step:
        """The step after the pass `name`: one that is to come, or one on the way here.

        Raises CompilationError when there is no such pass.
        """
        name = current_name(name)
        for step in reversed(self.path):
            if step.name == name:
                return step
        if name not in self.remaining:
            known = ", ".join((*(step.name for step in self.path), *self.remaining))
            raise CompilationError(f"expected a pass that this kernel goes through ({known}), found '{name}'")
        step = self
        while step.name != name:
            step = step.next()
        return step

    def finish(self) -> Step:
        """The step after the last pass."""
        step = self
        while step.passes:
            step = step.next()
        return step

    def edited(self, text: str) -> Step:
        """A step whose module is `text`, before the same passes.

        Operations without a location get that of the line that they were in before; in a line that is new they are
        located in the text itself.

        Raises CompilationError, located in the text, for what is no module or breaks a rule of the IR.
        """
        name = f"{self.name}.mlir"
        module = parse_module(text, filename=name)
        verify_module(module)
        _relocate(module, text.splitlines(), name, located_lines(self.module()))
        return Step(EDITED, print_module(module), self.passes, self.profile, self.plain, self)

    # --- looking -------------------------------------------------------------------------------------------------

    def diff(self, since: Step | None = None) -> str:
        """The unified diff to this step from `since`, or else from the step before; empty where they are equal."""
        before = since or self.before
        return "" if before is None else unified_diff(before, self)

    def show_diff(self, since: Step | None = None) -> Page:
        """The same side by side, with the words that differ, as a page for a notebook or a file."""
        from .show.pages import diff_page

        before = since or self.before or self
        return diff_page(before.text, self.text, title=self.name)

    def changes(self) -> str:
        """Summary of what the pass has changed; empty for the frontend's step."""
        return "" if self.before is None else changes(self.before, self)

    @property
    def ttgir(self) -> str:
        """Return what stock Triton gets.

        Raises CompilationError while passes are left to run, and when the Triton version can't express the module.
        """
        if self.passes:
            raise CompilationError(f"this is not the last step: {', '.join(self.remaining)} are still to run")
        return text_for_triton(self.module(), self.profile, plain=self.plain)

    def storage_maps(self) -> list[StorageMap]:
        """Return which memory every buffer has, for each function that allocates some."""
        return storage_maps(self.module())

    def interpret(self, grid: Grid, args: Sequence[Any] | Mapping[str, Any], **options: Any) -> Interpretation:
        """Run this module on the CPU, as `tlx_xdsl.interpret_text` does; no pass runs before."""
        return interpret_module(self.module(), grid, args, Options(**options))

    def _repr_html_(self) -> str:
        """The module beside the kernel's source."""
        from .show.pages import module_page

        return module_page(self.module(), title=self.name)


def _relocate(module: ModuleOp, lines: Sequence[str], name: str, before: Sequence[LocatedLine]) -> None:
    """Give operations that are located in one of `lines` of the text `name` the location of the same line `before`."""
    matcher = difflib.SequenceMatcher(None, [line.text for line in before], lines, autojunk=False)
    origins = {new + i + 1: before[old + i].op for old, new, size in matcher.get_matching_blocks() for i in range(size)}
    for op in module.walk():
        place = op.location
        if isinstance(place, FileLineColLoc) and place.filename.data == name:
            origin = origins.get(place.line.data)
            op.location = place if origin is None else origin.location


def first_step(
    kernel: Any,
    signature: Mapping[str, Signature],
    constexprs: Mapping[str, Any] | None = None,
    *,
    target: str = "sm_90a",
    num_warps: int = 4,
    num_ctas: int = 1,
    cluster: tuple[int, int, int] = (1, 1, 1),
    triton_version: str | None = None,
) -> Step:
    """The module that the frontend makes of a kernel, before all passes; arguments as for `Kernel.compile`.

    Raises CompilationError, located in the kernel, for every fault in it.
    """
    specialization = Specialization(signature, constexprs or {}, target, num_warps, num_ctas, cluster)
    return step_after_frontend(kernel, specialization, triton_version)


def step_after_frontend(kernel: Any, specialization: Specialization, triton_version: str | None = None) -> Step:
    """The same for what a kernel is compiled for as a whole."""
    profile = None if triton_version is None else profile_for(triton_version)
    source = source_of_kernel(kernel)
    module = frontend_module(source, specialization, profile)
    verify_module(module)
    plain = is_plain(module)
    asked = (*source.passes, *specialization.passes)
    return Step("frontend", print_module(module), passes_for(profile, plain=plain, asked=asked), profile, plain, None)
