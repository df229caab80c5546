"""Scripts whose launches are recorded, with copies of what their arguments hold, and then run in the interpreter."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from tlx_xdsl.grid import grid_of
from tlx_xdsl.runtime.driver.host_values import defaults_of
from tlx_xdsl.runtime.simulate.interpret import Interpretation

from .frozen import MOST_BYTES, MOST_LAUNCHES, RECORD, Frozen, Recorded
from .without_gpu import InterpretedKernel, Launch


class RecordedKernel(InterpretedKernel):
    """A kernel whose launches are recorded before they run."""

    def perform(self, launch: Launch) -> Interpretation:
        """Record a launch, unless it reaches memory by addresses that only it knows, and run it."""
        if len(RECORD) < MOST_LAUNCHES and not launch.options.reachable:
            frozen = Frozen(launch.arguments, {each.name for each in launch.source.parameters if each.is_constexpr})
            if frozen.size <= MOST_BYTES:
                grid = grid_of(launch.grid, {**defaults_of(launch.source), **launch.arguments})
                options = {"cluster": tuple(launch.options.cluster), **launch.compile_options}
                RECORD.append(
                    Recorded(
                        launch.source, grid, frozen.thawed, options, self.gpu, frozen.size, f"{grid} {frozen.identity}"
                    )
                )
        return super().perform(launch)
