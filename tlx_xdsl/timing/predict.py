"""The clock's front: from PTX and arguments to cycles, a timeline, and what limits the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .timeline import Timeline


@dataclass(frozen=True)
class Prediction:
    """A launch as the clock sees it."""

    chip: str
    cycles: float
    """Cycles of a multiprocessor from the start of the launch to its end."""
    timeline: Timeline
    """The CTAs that were replayed in detail."""
    seconds_of_work: float
    """What the prediction itself took of a core, in seconds."""
    bound: str
    """What limits it most, in one or two words: `tensor cores`, `memory`, `latency of barriers`."""

    def milliseconds(self, hertz: float) -> float:
        """Return the time of the launch at a clock of the multiprocessors."""
        return self.cycles / hertz * 1e3


def predict(
    text: str,
    grid: int | Sequence[int],
    args: Sequence[Any],
    *,
    chip: str = "H200",
    kernel: str | None = None,
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    registers: int | None = None,
    machine_code: str | None = None,
    tasks: Sequence[tuple[int, int, str]] = (),
    timeline: bool = True,
) -> Prediction:
    """Predict how long a launch of PTX takes. Arguments are those of `run_ptx`, which are not written.

    `registers` are those of a thread and `machine_code` the disassembly (SASS), where there is a cubin. `tasks` names
    warps: the first, how many, and the name of each task. With `timeline=False` no spans are kept.
    """
    raise NotImplementedError
