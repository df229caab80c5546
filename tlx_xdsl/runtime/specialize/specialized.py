"""One specialised kernel: the passes' module as source, its kernel, and the arguments of its launches."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr

from tlx_xdsl.decompile.host import PlainKernel
from tlx_xdsl.decompile.specialised import source_of_specialised
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError, internal_error, shown_path
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid
from tlx_xdsl.language.compile_time import unwrapped
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.transforms.pipelines import first_beyond_plain
from tlx_xdsl.transforms.warp_specialize.refusal import refusal_at
from tlx_xdsl.transforms.warp_specialize.tasks_of import NOTE

from ..driver.compilation import frontend_module
from ..driver.defaults import KernelDefaults
from ..driver.host_values import bound, defaults_of
from ..driver.specialization import Specialization
from ..simulate.interpret import source_of_kernel
from .decision import GIVEN, Decision, NotSpecialisedError
from .host_part import HostPart
from .read_host_part import host_part_of
from .rules import REASONS, by_rule
from .turns import Turns
from .verdict import Verdict
from .written import kernel_of, write

LOG = logging.getLogger("tlx_xdsl.specialize")

PROGRAMS = 132
"""Programs that run at a time where no GPU says how many multiprocessors it has: those of an H200."""


@dataclass(frozen=True)
class Specialized:
    """A plain kernel's specialised form for some types and constants, or the reason why there is none."""

    plain: Any
    """The kernel that was specialised."""
    kernel: Any
    """The kernel of the written file; the plain one where `refused` says why."""
    source: str = ""
    """The text of the file."""
    path: Path | None = None
    host: HostPart = field(default_factory=lambda: HostPart(()))
    table: KernelDefaults = field(default_factory=KernelDefaults)
    """The types that the file's kernel is compiled for, and its launch options."""
    decisions: tuple[Decision, ...] = ()
    verdict: Verdict | None = None
    """None where it was not asked for."""
    turns: tuple[Turns, ...] = ()
    """Conditions of the proof."""
    milliseconds: float | None = None
    """What the clock expects of the launch that was searched for."""
    refused: CompilationError | None = None
    is_defect: bool = False
    """True where a defect of the compiler had a part in it: another version may do better."""

    def __bool__(self) -> bool:
        """True where there is a specialised kernel."""
        return self.refused is None

    @property
    def untimed(self) -> str:
        """The form of it that no GPU has timed, in words; empty where all were."""
        if self.host.split > 1:
            return "loops that programs share"
        return "copies by threads" if "tlx.async_load(" in self.source else ""

    @property
    def options(self) -> dict[str, Any]:
        """The options of its launches."""
        known = dict(self.table.options)
        cluster = known.pop("cluster", None)
        known.pop("target", None)
        return known if cluster is None else {**known, "ctas_per_cga": tuple(cluster)}

    @property
    def run_options(self) -> dict[str, Any]:
        """The options of its runs in the interpreter."""
        known = self.table.options
        return {"num_warps": known.get("num_warps", 4), "cluster": tuple(known.get("cluster", (1, 1, 1)))}

    @property
    def specialization(self) -> Specialization:
        """Return what the written kernel is compiled for."""
        options = {name: value for name, value in self.table.options.items() if name != "num_stages"}
        if "cluster" in options:
            options["cluster"] = tuple(options["cluster"])
        return Specialization(cast("Mapping[str, Signature]", self.table.signature), self.table.constexprs, **options)

    def arguments(self, grid: Grid, *args: Any, **named: Any) -> tuple[tuple[int, int, int], list[Any]] | None:
        """The grid and arguments of the specialised launch for those of the plain one.

        None where the launch does not fit: `why_not` says the reason, and the plain kernel is to be launched.
        """
        found = self.fitted(grid, self.named(args, named))
        return None if isinstance(found, str) else found

    def why_not(self, grid: Grid, *args: Any, **named: Any) -> str:
        """Return why a launch takes the plain kernel; empty where it takes the specialised one."""
        found = self.fitted(grid, self.named(args, named))
        return found if isinstance(found, str) else ""

    def named(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments of a plain launch by name."""
        source = source_of_kernel(self.plain)
        return {**defaults_of(source), **bound(source, args, named)}

    def fitted(
        self, grid: Grid, named: Mapping[str, Any], programs: int = PROGRAMS
    ) -> tuple[tuple[int, int, int], list[Any]] | str:
        """The same for arguments by name, on a GPU that runs so many programs at a time; or why it does not fit."""
        if self.refused is not None:
            return self.refused.message
        found = self.host.arguments(grid, named, programs)
        if self.turns and not isinstance(found, str):
            sizes, values = found
            known = dict(zip([each.name for each in self.kernel.source.parameters], values, strict=True))
            for each in self.turns:
                if not each.holds(sizes, known):
                    return f"the launch does not fit: the loop at line {each.line} of {self.path} does not turn"
        return found

    def report(self) -> str:
        """Return what was decided and why, what else there was, and what is proved."""
        name = source_of_kernel(self.plain).name
        if self.refused is not None:
            return "\n".join([f"'{name}' is launched as it is: {self.refused.message}", *map(str, self.decisions)])
        lines = [f"'{name}' is warp-specialised: {self.path}"]
        if self.milliseconds is not None:
            lines.append(f"the clock expects {self.milliseconds:.4g} ms")
        lines += [str(each) for each in self.decisions]
        if self.verdict is not None:
            lines.append(f"synchronisation: {self.verdict}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the report."""
        return self.report()


def warp_specialized(
    kernel: Any,
    signature: Mapping[str, Signature],
    constexprs: Mapping[str, Any] | None = None,
    decisions: Any = None,
    target: str = "sm_90a",
    num_warps: int = 4,
) -> Specialized:
    """Specialise a plain kernel for types and constants; `decisions` are `transforms.warp_specialize`'s `Decisions`.

    What can't be specialised is no error: `refused` of the result says why, at its line. A defect of a pass is such a
    reason, too, since the plain kernel has nothing to do with it. Whether the result may be launched is another
    question (`verdict.py`).

    Raises CompilationError for a fault in the kernel itself.
    """
    source = source_of_kernel(kernel)
    wanted = Specialization(signature, dict(constexprs or {}), target, num_warps)
    module = frontend_module(source, wanted)
    try:
        return _specialized(kernel, source, module, decisions, constexprs)
    except CompilationError as refusal:
        return Specialized(kernel, kernel, refused=refusal)
    except Exception as error:
        refusal = internal_error(error)
        LOG.warning("%s is launched as it is: %s", source.name, "; ".join((refusal.message, *refusal.notes)))
        return Specialized(kernel, kernel, refused=refusal, is_defect=True)


def _specialized(
    kernel: Any, source: KernelSource, module: ModuleOp, decisions: Any, constexprs: Mapping[str, Any] | None
) -> Specialized:
    from tlx_xdsl.transforms.warp_specialize.specialize import Decisions, specialize

    if (beyond := first_beyond_plain(module)) is not None:
        raise refusal_at(beyond, f"'{source.name}' is no plain Triton: it has {beyond.name}")
    wanted = by_rule(decisions if decisions is not None else Decisions(), module)
    specialize(module, make_context(), wanted, replicate=False)
    constants = {name: unwrapped(value) for name, value in (constexprs or {}).items()}
    text, lacking = source_of_specialised(
        module, _title(source, wanted), PlainKernel([each.name for each in source.parameters], constants)
    )
    if lacking:
        names = ", ".join(sorted({op.name for op in lacking}))
        raise refusal_at(lacking[0], f"its source would lack {names}")
    return restored(kernel, text, host_part_of(module), (*_made(decisions, wanted), *_notes(module)))


def _made(given: Any, wanted: Any) -> list[Decision]:
    """The decisions that were given, and those that a rule has made."""
    known: set[str] = set() if given is None else set(given.given())
    return [Decision(name, value, GIVEN if name in known else REASONS[name]) for name, value in wanted.given().items()]


def _title(source: KernelSource, decisions: Any) -> str:
    """Return the first line of the written file."""
    made = ", ".join(f"{name}={value}" for name, value in decisions.given().items())
    return f"{source.name} of {Path(source.filename).name}, warp-specialised by tlx_xdsl: {made}."


def restored(kernel: Any, text: str, host: HostPart, decisions: tuple[Decision, ...]) -> Specialized:
    """Return what a source and the host's part make together: the file is written and imported."""
    path = write(text, source_of_kernel(kernel).symbol)
    made, table = kernel_of(path)
    return Specialized(kernel, made, text, path, host, table, decisions)


def _notes(module: ModuleOp) -> tuple[Decision, ...]:
    """Decisions that the passes have noted at operations; each reason once."""
    found: dict[str, Decision] = {}
    for op in module.walk():
        note = op.attributes.get(NOTE)
        if isinstance(note, StringAttr) and note.data not in found:
            name = next((each.name_hint for each in op.results if each.name_hint), op.name)
            place = source_location(op.location)
            line = "" if place is None else f"{shown_path(place.filename)}:{place.line}"
            found[note.data] = Decision(name, "", note.data, line)
    return tuple(found.values())


def refused_by_choice(specialized: Specialized, reason: str) -> Specialized:
    """Return the plain kernel as the choice, with the reason."""
    return replace(specialized, kernel=specialized.plain, refused=NotSpecialisedError(reason))
