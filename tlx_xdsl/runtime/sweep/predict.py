"""Times of configurations by the clock: what a sweep has compiled, predicted from its final code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.targets import target_named

from ..clock.launch import CHIPS, chip_for, predict_launch
from ..clock.stand_ins import standing_in
from ..driver.host_values import flattened
from ..measure.speeds import Speed
from ..simulate.ptx_stage import launch_of
from .jobs import array_of_argument, with_block
from .report import JobResult


@dataclass(frozen=True)
class Predictor:
    """Predictions on one GPU, for arguments by name."""

    arguments: Mapping[str, Any]
    chip: str
    hertz: float | None
    """The clock of the multiprocessors; None for what the GPU is taken to run at."""

    def predict(self, result: JobResult, sizes: tuple[int, int, int]) -> Speed:
        """Return what the clock predicts for a configuration on a grid of these sizes.

        Raises ValueError where the sweep has kept no PTX.
        """
        job, code = result.job, result.result
        assert code is not None, "what can be launched was compiled"
        if not code.ptx:
            raise InputError("the clock needs the PTX of the sweep: compile_many(..., keep='all')")
        wanted = job.specialization
        names = [each.name for each in job.source.parameters if each.name in wanted.signature]
        given = {name: self._value(name, str(wanted.signature[name])) for name in names}
        values = [pair for name, value in given.items() for pair in flattened(name, value)]
        launch = launch_of(code, wanted.cluster, values, sizes, wanted.target)
        try:
            found = predict_launch(code, launch, self.chip, self.hertz, tasks=[], timeline=False)
        except CompilationError as error:
            return Speed(job.stated, None, f"the clock can't predict it: {error.message}")
        ms = found.milliseconds()
        remark = f"at least; {result.remark}".removesuffix("; ") if found.is_lower_bound else result.remark
        return Speed(job.stated, (ms, ms, ms), remark, found.cycles)

    def _value(self, name: str, type_: str) -> Any:
        array = array_of_argument(self.arguments[name])
        return self.arguments[name] if array is None else with_block(array, type_)


def predictor_of(arguments: Mapping[str, Any], target: str, chip: str | None, hertz: float | None) -> Predictor | None:
    """Return what predicts launches on a GPU, by default that of a target; None where the clock knows none of it.

    Raises CompilationError for a GPU that the clock does not know.
    """
    if chip is None and target_named(target).capability not in CHIPS:
        return None
    return Predictor(standing_in(arguments), chip_for(target, chip), hertz)
