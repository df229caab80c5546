"""Constants of the GEMM time model from measured times: least squares of the relative errors, and what a choice loses.

The model is `tlx_xdsl.kernels.gemm.model.predict`; its constants are `Model`'s and, for each configuration, `Times`'.
They are positive, so their logarithms are fitted (Levenberg-Marquardt with numerical derivatives). A weak pull towards
the constants of today keeps what no time depends on. A candidate that is far from the best of its problem counts less:
the choice is between those that are close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from benchmarks.gemm.shapes import Shape
from tlx_xdsl.kernels.gemm import model as kernels_model
from tlx_xdsl.kernels.gemm.division import Choice
from tlx_xdsl.kernels.gemm.model import MODEL, TIMES, Matrix, Model, Reading, Times, line_cost
from tlx_xdsl.kernels.gemm.tiles import CONFIGS

PULL, PULL_OF_STEPS = 0.03, 4
"""What a constant that is e times that of today counts, as a relative error of one time; and for the time of a step,
which is nearly that of its products, so that ends of tiles do not take over from it what only longer launches show."""

STEPS = 30
DIFFERENCE = 1e-3


@dataclass(frozen=True)
class Sample:
    """A measured time: the problem, what ran, its microseconds, and those of the problem's best candidate."""

    shape: Shape
    choice: Choice
    microseconds: float
    best: float


def predict(choice: Choice, shape: Shape, **constants: Any) -> float:
    """Microseconds of a product of matrices of 16-bit elements that lie without gaps."""
    a = Matrix(True, line_cost(2 * shape.k)) if shape.layout[0] == "N" else Matrix(False, line_cost(2 * shape.m))
    b = Matrix(False, line_cost(2 * shape.n)) if shape.layout[1] == "N" else Matrix(True, line_cost(2 * shape.k))
    return kernels_model.predict(choice, shape.m, shape.n, shape.k, Reading(a, b), **constants)


def label(choice: Choice) -> str:
    """The name of a choice; `choice_named` reads it."""
    name = next((name for name, each in CONFIGS.items() if each == choice.config), None)
    if name is None:
        raise ValueError(f"expected a configuration of CONFIGS, got {choice.config}")
    order = "swapped" if choice.swapped else "straight"
    return f"{name}/{order}/{choice.programs}/{choice.full_rounds}/{choice.share}/{choice.split}"


def choice_named(name: str) -> Choice | None:
    """The choice of a name; None where the configuration is no longer there."""
    config, order, *numbers = name.split("/")
    if config not in CONFIGS:
        return None
    programs, full_rounds, share, split = map(int, numbers)
    return Choice(CONFIGS[config], programs, order == "swapped", full_rounds, share, split)


def samples_of(records: Sequence[Mapping[str, Any]]) -> list[Sample]:
    """The times of runs of `fit`; of what several have measured, the later one's."""
    found: dict[Shape, dict[str, float]] = {}
    for case in (case for record in records for case in record["cases"].values()):
        shape = Shape(*case["facts"]["sizes"], case["facts"]["layout"])
        times = {name: median(each) * 1e3 for name, each in case["cool"]["times"].items() if each and name != "cuBLAS"}
        found.setdefault(shape, {}).update(times)
    return [
        Sample(shape, choice, microseconds, min(times.values()))
        for shape, times in found.items()
        for name, microseconds in times.items()
        if (choice := choice_named(name)) is not None
    ]


@dataclass(frozen=True)
class Constants:
    """All constants of the model."""

    model: Model
    times: Mapping[str, Times]

    def predict(self, sample: Sample) -> float:
        """Microseconds."""
        times = self.times[label(sample.choice).split("/")[0]]
        return predict(sample.choice, sample.shape, model=self.model, times=times)

    def values(self) -> dict[str, float]:
        """All by name."""
        found = {f"model.{name}": float(value) for name, value in asdict(self.model).items()}
        for config, times in self.times.items():
            found |= {f"{config}.{name}": float(value) for name, value in asdict(times).items()}
        return found

    def with_values(self, values: Mapping[str, float]) -> Constants:
        """Replace the constants of these names (`owner.field`)."""
        by_owner: dict[str, dict[str, float]] = {}
        for name, value in values.items():
            owner, field = name.split(".")
            by_owner.setdefault(owner, {})[field] = value
        model = replace(self.model, **by_owner.pop("model"))
        return Constants(model, {name: replace(times, **by_owner[name]) for name, times in self.times.items()})


TODAY = Constants(MODEL, TIMES)


def fit(samples: Sequence[Sample], start: Constants = TODAY) -> Constants:
    """The constants that predict the times best."""
    names = list(start.values())
    first = np.log(np.array(list(start.values().values())))
    weights = np.array([each.best / each.microseconds for each in samples])
    measured = np.array([each.microseconds for each in samples])
    pull = np.array([PULL_OF_STEPS if name.endswith(".step") else PULL for name in names])

    def residuals(logs: np.ndarray) -> np.ndarray:
        constants = start.with_values(dict(zip(names, map(float, np.exp(logs)), strict=True)))
        predicted = np.array([constants.predict(each) for each in samples])
        return np.concatenate([weights * (predicted / measured - 1), pull * (logs - first)])

    logs, damping = first.copy(), 1e-2
    now = residuals(logs)
    for _ in range(STEPS):
        columns = [(residuals(logs + DIFFERENCE * unit) - now) / DIFFERENCE for unit in np.eye(len(logs))]
        jacobian = np.stack(columns, axis=1)
        square = jacobian.T @ jacobian
        step = np.linalg.solve(square + damping * np.diag(np.diag(square)), -jacobian.T @ now)
        after = residuals(logs + step)
        if after @ after < now @ now:
            gained = 1 - (after @ after) / (now @ now)
            logs, now, damping = logs + step, after, max(damping / 3, 1e-9)
            if gained < 1e-4:
                break
        else:
            damping *= 5
            if damping > 1e6:
                break
    return start.with_values(dict(zip(names, map(float, np.exp(logs)), strict=True)))


def losses(samples: Sequence[Sample], constants: Constants) -> dict[Shape, tuple[float, Choice, Choice]]:
    """Return for each problem how many times the best time the choice takes, what is chosen, and what is best."""
    groups: dict[Shape, list[Sample]] = {}
    for each in samples:
        groups.setdefault(each.shape, []).append(each)
    found: dict[Shape, tuple[float, Choice, Choice]] = {}
    for shape, group in groups.items():
        chosen = min(group, key=constants.predict)
        best = min(group, key=lambda each: each.microseconds)
        found[shape] = (chosen.microseconds / best.microseconds, chosen.choice, best.choice)
    return found


def lost(found: Mapping[Any, tuple[float, Choice, Choice]]) -> str:
    """Mean and worst, as parts of the best speed."""
    parts = [1 / each[0] for each in found.values()]
    return (
        f"the choice runs at {sum(parts) / len(parts):.3f} of the best measured on average, {min(parts):.3f} at worst"
    )


def crossed(samples: Sequence[Sample], folds: int) -> dict[Shape, tuple[float, Choice, Choice]]:
    """`losses` of problems that the constants were not fitted to: each part in turn is left out of the fit."""
    problems = list(dict.fromkeys(each.shape for each in samples))
    found: dict[Shape, tuple[float, Choice, Choice]] = {}
    for fold in range(folds):
        out = set(problems[fold::folds])
        constants = fit([each for each in samples if each.shape not in out])
        found |= losses([each for each in samples if each.shape in out], constants)
    return found


def report(records: Sequence[Mapping[str, Any]], folds: int = 0) -> str:
    """The constants to write into `kernels/gemm/model.py`, and what choosing with them loses."""
    samples = samples_of(records)
    fitted = fit(samples)
    lines = ["MODEL = Model("]
    lines += [f"    {name}={value:.4g}," for name, value in asdict(fitted.model).items()]
    lines += [")", "TIMES = {"]
    lines += [f'    "{name}": Times({times.step:.4g}, {times.end:.4g}),' for name, times in fitted.times.items()]
    lines += ["}", ""]
    for title, constants in (("today", TODAY), ("fitted", fitted)):
        errors = [constants.predict(each) / each.microseconds - 1 for each in samples]
        typical = float(np.sqrt(np.mean(np.square(errors))))
        lines.append(f"{title}: relative error {typical:.3f}; {lost(losses(samples, constants))}")
    if folds:
        lines.append(f"fitted to others, {folds} folds: {lost(crossed(samples, folds))}")
    for shape, (factor, chosen, best) in sorted(losses(samples, fitted).items(), key=lambda each: -each[1][0]):
        if factor > 1.01:
            lines.append(f"{1 / factor:.3f} {shape!s:<28} chosen {label(chosen)}, best {label(best)}")
    return "\n".join(lines)
