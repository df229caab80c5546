"""Runs a kernel or a mutant of it, and says what is reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tests.gallery.synchronisation.zoo.kernels import Problem
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.faults import Deadlock
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.simulate.options import TENSOR_CORE_ORDERS
from tlx_xdsl.text.diagnostics import collected_diagnostics

PTX, ISSUE = TENSOR_CORE_ORDERS

MAX_TURNS = 20_000
"""Turns of a cluster that none of the kernels comes near."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one run."""

    kind: str
    """`fault`, `deadlock`, `warning`, `crash` (of the interpreter), `wrong` (numbers, without a report) or `right`."""
    policy: str
    text: str = ""
    """All that was reported."""
    line: str = ""
    """The first line of it."""

    @property
    def is_reported(self) -> bool:
        """True if the user hears of it."""
        return self.kind in ("fault", "deadlock", "warning")


def run_plan(plan: Plan, problem: Problem, policy: str, seed: int = 0, order: str = PTX) -> Outcome:
    """Run all programs of a problem under one policy; `order` is the option `tensor_core_order`."""
    problem.reset()
    memory = GlobalMemory()
    arguments = bind(plan.function, problem.arguments, problem.names, memory)
    launch = Launch(plan, memory, problem.grid, problem.cluster, arguments, in_issue_order=order == ISSUE)
    with collected_diagnostics() as warnings:
        try:
            for _ in run_clusters(launch, list(clusters(launch)), Settings(policy, seed, MAX_TURNS)):
                pass
        except CompilationError as error:
            kind = "deadlock" if isinstance(error, Deadlock) else "fault"
            return Outcome("crash" if _is_crash(str(error)) else kind, policy, str(error), error.message)
    if warnings:
        return Outcome("warning", policy, "\n".join(map(str, warnings)), warnings[0].message)
    return Outcome("right" if problem.is_right() else "wrong", policy)


def _is_crash(text: str) -> bool:
    return "internal error" in text or "Traceback" in text


def run_mutant(
    module: ModuleOp, problem: Problem, policies: Sequence[str] = POLICIES, order: str = PTX
) -> list[Outcome]:
    """Run a mutant under one policy after the other, until one reports something."""
    plan = make_plan(module)
    outcomes: list[Outcome] = []
    for policy in policies:
        outcomes.append(run_plan(plan, problem, policy, order=order))
        if outcomes[-1].is_reported:
            break
    return outcomes
