"""Policies: the same for the same seed, and each of the kind that it says."""

from collections import Counter

import pytest

from tests.gallery.synchronisation.zoo.kernels import CASES, Problem
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.engine import Transfer
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.limits import POLICIES, SEEDED
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.interpreter.scheduler import PATIENCE, Adversarial, RoundRobin, make_policy


class Seen:
    """Notes who had a turn."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.waiting: list[int] = []
        """Turns between the issue of a transfer and its end."""
        self._issued: dict[Transfer, int] = {}

    def began(self, _cluster) -> None:
        pass

    def ran(self, task) -> None:
        self.turns.append(task.label)

    def issued(self, _cluster, transfer) -> None:
        self._issued[transfer] = len(self.turns)

    def completed(self, _cluster, transfer) -> None:
        self.waiting.append(len(self.turns) - self._issued[transfer])
        self.turns.append(f"{transfer.what} {transfer.number}")

    def flipped(self, _barrier, _block) -> None:
        pass


@pytest.fixture(scope="module")
def gemm():
    case = CASES[0]
    return make_plan(case.module()), case.make((128, 64, 256))


def trace(gemm, schedule: str, seed: int = 0) -> Seen:
    plan, problem = gemm
    assert isinstance(problem, Problem)
    memory, seen = GlobalMemory(), Seen()
    launch = Launch(
        plan, memory, problem.grid, (1, 1, 1), bind(plan.function, problem.arguments, problem.names, memory)
    )
    list(run_clusters(launch, list(clusters(launch)), Settings(schedule, seed), seen))
    assert problem.is_right()
    return seen


@pytest.mark.parametrize("schedule", POLICIES)
def test_a_seed_says_all(gemm, schedule):
    assert trace(gemm, schedule, 5).turns == trace(gemm, schedule, 5).turns


@pytest.mark.parametrize("schedule", POLICIES)
def test_seeds_differ_where_they_should(gemm, schedule):
    runs = {tuple(trace(gemm, schedule, seed).turns) for seed in range(4)}
    assert len(runs) > 1 if schedule in SEEDED else len(runs) == 1


def test_every_schedule_does_the_same_work(gemm):
    work = [Counter(trace(gemm, schedule).turns) for schedule in POLICIES]
    assert work[0].keys() == work[1].keys() == work[2].keys()


def test_round_robin_is_prompt_and_the_adversary_is_late(gemm):
    prompt, late = (trace(gemm, schedule).waiting for schedule in ("round-robin", "adversarial"))
    assert sum(prompt) / len(prompt) < sum(late) / len(late)


class Stub:
    def __init__(self, agent: int, turns: int = 0) -> None:
        self.agent = agent
        self.turns = turns


class Late:
    def __init__(self, serial: int) -> None:
        self.serial = serial


def test_round_robin_goes_round_with_a_transfer_between():
    policy, tasks = RoundRobin(), [Stub(1), Stub(2), Stub(3)]
    transfers = [Late(2), Late(1)]
    chosen = [policy.choose(tasks, transfers) for _ in range(6)]
    assert chosen == [tasks[0], transfers[1], tasks[1], transfers[1], tasks[2], transfers[1]]


def test_the_adversary_lets_one_task_run_until_it_has_had_enough():
    policy, tasks = Adversarial(0), [Stub(1, turns=3), Stub(2, turns=9)]
    chosen = [policy.choose(tasks, [Late(1)]) for _ in range(PATIENCE + 2)]
    assert set(chosen[: PATIENCE + 1]) == {tasks[1]}
    assert chosen[-1] is tasks[0]


def test_the_adversary_completes_transfers_only_when_no_task_can_run():
    policy, transfers = Adversarial(0), [Late(n) for n in range(5)]
    assert {policy.choose([], transfers) for _ in range(100)} == set(transfers)


def test_an_unknown_schedule():
    with pytest.raises(ValueError, match="unknown schedule 'fair', expected one of round-robin, random, adversarial"):
        make_policy("fair", 0)
