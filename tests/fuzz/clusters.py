"""Random kernels of clusters: allocations, uses of other CTAs' memory, barriers, tasks and exits in all orders.

Each program runs in the interpreter, as the frontend makes it and as stock Triton gets it, and in the PTX machine. Both
must report nothing, and give the numbers of a model in numpy. So a barrier, fence or end of a lifetime that the
compiler leaves out, or puts in the wrong place, shows.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.pool import Ending, report
from tests.versions import INSTALLED
from tlx_xdsl import CompilationError, interpret

HEAD = """import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit(noinline=True)
def arrive_at(barrier, rank):
    tlx.barrier_arrive(barrier, 1, remote_cta_rank=rank)


@tlx_xdsl.jit
def kernel(x, out, n):
    rank = tlx.cluster_cta_rank()
    {place}
    {load}
"""
PLACE, LOAD = "place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)", "acc = tl.load(x + place)"
STORE = "tl.store(out + place, acc)"
CLUSTERS = 2
"""Clusters of a launch."""
Step = Callable[[np.ndarray], np.ndarray]
"""From the block of each CTA of a cluster, as rows, to those after it."""


@dataclass
class Program:
    """A kernel, and what it computes."""

    text: str
    size: int
    """CTAs of a cluster."""
    x: np.ndarray
    """The blocks of the CTAs, as [clusters, CTAs, elements]."""
    stages: Sequence[str]
    expected: np.ndarray
    """The same of the kernel and of its two tasks."""


@dataclass
class Piece:
    """Some lines of a kernel."""

    allocations: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    step: Step = lambda blocks: blocks


class Writer:
    """Writes one program."""

    def __init__(self, number: int):
        self.choice = random.Random(number)
        self.size = self.choice.choice((2, 2, 3, 4))
        self.width = self.choice.choice((128, 512))
        self.names = self.copies = 0
        self.stages = ["frontend", "ttgir", "ptx"]

    # Pieces ----------------------------------------------------------------------------------------------------------

    def _name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def piece(self, *, alone: bool) -> Piece:
        """A piece that all CTAs run; with `alone` all warps do, and they may meet."""
        kinds = [self._signal, self._gather, self._store, self._async_store, self._copy, self._scratch, self._sum]
        kinds += [self._local_barrier, self._loop, self._own_store] + ([self._cluster_barrier] if alone else [])
        return self.choice.choice(kinds)()

    def private(self) -> Piece:
        """A piece that uses no other CTA."""
        return self.choice.choice([self._scratch, self._sum, self._local_barrier])()

    def _other(self) -> tuple[int, str]:
        shift = self.choice.randrange(1, self.size)
        return shift, f"(rank + {shift}) % {self.size}"

    def _arrival(self, barrier: str, to: str) -> str:
        if self.choice.random() < 0.2:
            return f"arrive_at({barrier}, {to})"
        return f"tlx.barrier_arrive({barrier}, 1, remote_cta_rank={to})"

    def _signal(self) -> Piece:
        bar, (_, to), count = self._name("bar"), self._other(), self.choice.choice((1, 2))
        which = self.choice.randrange(count)
        return Piece(
            [f"{bar} = tlx.alloc_barriers({count})"],
            [self._arrival(f"{bar}[{which}]", to), f"tlx.barrier_wait({bar}[{which}], 0)"],
        )

    def _gather(self) -> Piece:
        bar, to = self._name("bar"), self.choice.randrange(self.size)
        return Piece(
            [f"{bar} = tlx.alloc_barriers(1, arrive_count={self.size})"],
            [self._arrival(f"{bar}[0]", str(to)), f"tlx.barrier_wait({bar}[0], 0, pred=rank == {to})"],
        )

    def _sent(self, shift: int, more: int) -> Step:
        return lambda blocks: blocks + np.roll(blocks + more, shift, 0)

    def _store(self) -> Piece:
        bar, box, (shift, to), more = self._name("bar"), self._name("box"), self._other(), self.choice.randrange(9)
        return Piece(
            self._mixed(f"{bar} = tlx.alloc_barriers(1)", f"{box} = tlx.local_alloc((WIDTH,), tl.int32, 1)"),
            [
                f"tlx.remote_shmem_store({box}[0], acc + {more}, {to})",
                self._arrival(f"{bar}[0]", to),
                f"tlx.barrier_wait({bar}[0], 0)",
                f"acc += tlx.local_load({box}[0])",
            ],
            self._sent(shift, more),
        )

    def _own_store(self) -> Piece:
        box, more = self._name("box"), self.choice.randrange(9)
        again = self.choice.random() < 0.5
        lines = [f"tlx.remote_shmem_store({box}[0], acc + {more}, rank)", f"acc += tlx.local_load({box}[0])"]
        return Piece(
            [f"{box} = tlx.local_alloc((WIDTH,), tl.int32, 1)"],
            lines * (1 + again),
            lambda blocks: 4 * blocks + 3 * more if again else 2 * blocks + more,
        )

    def _async_store(self) -> Piece:
        bar, box, (shift, to), more = self._name("bar"), self._name("box"), self._other(), self.choice.randrange(9)
        return Piece(
            self._mixed(f"{bar} = tlx.alloc_barriers(1)", f"{box} = tlx.local_alloc((WIDTH,), tl.int32, 1)"),
            [
                f"tlx.barrier_expect_bytes({bar}[0], WIDTH * 4)",
                f"tlx.async_remote_shmem_store({box}[0], acc + {more}, {to}, {bar}[0])",
                f"tlx.barrier_wait({bar}[0], 0)",
                f"acc += tlx.local_load({box}[0])",
            ],
            self._sent(shift, more),
        )

    def _copy(self) -> Piece:
        bar, box, src, (shift, to) = self._name("bar"), self._name("box"), self._name("src"), self._other()
        self.copies += 1
        fence = ["tlx.fence_async_shared()"] if self.choice.random() < 0.5 else []
        if not fence:
            # The compiler puts it in, and the frontend's module has none.
            self.stages = [stage for stage in self.stages if stage != "frontend"]
        buffer = "tlx.local_alloc((WIDTH,), tl.int32, 1)"
        return Piece(
            self._mixed(f"{bar} = tlx.alloc_barriers(1)", f"{box} = {buffer}", f"{src} = {buffer}"),
            [
                f"tlx.local_store({src}[0], acc + 1)",
                *fence,
                f"tlx.barrier_expect_bytes({bar}[0], WIDTH * 4)",
                f"tlx.async_remote_shmem_copy({box}[0], {src}[0], {to}, {bar}[0])",
                f"tlx.barrier_wait({bar}[0], 0)",
                f"acc += tlx.local_load({box}[0])",
            ],
            self._sent(shift, 1),
        )

    def _loop(self) -> Piece:
        bar, (shift, to), turns = self._name("bar"), self._other(), self.choice.choice((1, 2, 3))
        back = f"(rank + {self.size - shift}) % {self.size}"
        return Piece(
            [f"{bar} = tlx.alloc_barriers(2)"],
            [
                f"for t in range({turns}):",
                f"    tlx.barrier_arrive({bar}[0], 1, remote_cta_rank={to})",
                f"    tlx.barrier_wait({bar}[0], t & 1)",
                f"    tlx.barrier_arrive({bar}[1], 1, remote_cta_rank={back})",
                f"    tlx.barrier_wait({bar}[1], t & 1)",
                "    acc += t",
            ],
            lambda blocks: blocks + sum(range(turns)),
        )

    def _scratch(self) -> Piece:
        box = self._name("tmp")
        return Piece(
            [f"{box} = tlx.local_alloc((WIDTH,), tl.int32, 1)"],
            [f"tlx.local_store({box}[0], acc + 1)", f"acc += tlx.local_load({box}[0])"],
            lambda blocks: 2 * blocks + 1,
        )

    def _sum(self) -> Piece:
        return Piece([], ["acc += tl.sum(acc & 7)"], lambda blocks: blocks + (blocks & 7).sum(1, keepdims=True))

    def _local_barrier(self) -> Piece:
        bar = self._name("own")
        return Piece(
            [f"{bar} = tlx.alloc_barriers(1)"],
            [f"tlx.barrier_arrive({bar}[0], 1)", f"tlx.barrier_wait({bar}[0], 0)"],
        )

    def _cluster_barrier(self) -> Piece:
        return Piece([], ["tlx.cluster_barrier()"])

    def _mixed(self, *lines: str) -> list[str]:
        return self.choice.sample(lines, len(lines))

    # The program -----------------------------------------------------------------------------------------------------

    def _sequence(self, *, alone: bool, most: int) -> tuple[list[str], list[str], list[Step]]:
        """Allocations that stand before, lines, and what they compute."""
        before: list[str] = []
        lines: list[str] = []
        steps: list[Step] = []
        for _ in range(self.choice.randint(1, most)):
            made = self.piece(alone=alone)
            body = list(made.lines)
            match self.choice.randrange(4):
                case 0:
                    before += made.allocations
                case 1 if alone and lines and not any(line.startswith(" ") for line in lines):
                    at = self.choice.randrange(len(lines))
                    lines[at:at] = made.allocations
                case _:
                    body = made.allocations + body
            if self.choice.random() < 0.15:
                body = ["if n > 3:", *(f"    {line}" for line in body)]
            lines += body
            steps.append(made.step)
        return before, lines, steps

    def program(self) -> Program:
        """The program of this writer's number."""
        text, lines, steps = self._sequence(alone=True, most=4)
        early = self.choice.random() < 0.25
        if early:
            # A whole cluster ends before it has begun.
            at = self.choice.choice((0, len(text)))
            text[at:at] = [f"if tl.program_id(0) // {self.size} == 1:", f"    {STORE}", "    return"]
        text += lines
        ends: list[tuple[list[int], list[Step]]] = []
        """The CTAs that go on, and what they do."""
        inside: list[list[Step]] = [[], []]
        match self.choice.randrange(3):
            case 0:
                body, inside = self._tasks()
                text += [STORE, *body]
            case 1:
                leaves, made = self.choice.randrange(self.size), self.private()
                text += [f"if rank == {leaves}:", f"    {STORE}", "    return", *made.allocations, *made.lines, STORE]
                ends.append(([rank for rank in range(self.size) if rank != leaves], [made.step]))
            case _:
                text.append(STORE)
        body = "".join(f"    {line}\n" for line in text)
        x = np.arange(CLUSTERS * self.size * self.width, dtype=np.int32).reshape(CLUSTERS, self.size, self.width) % 97
        expected = np.zeros((3, *x.shape), np.int32)
        for number, blocks in enumerate(x):
            goes_on = number == 0 or not early
            found = _after(blocks, steps if goes_on else ())
            for ranks, made in ends if goes_on else ():
                found[ranks] = _after(found[ranks], made)
            expected[0, number] = found
            for task, made in enumerate(inside if goes_on else ()):
                expected[1 + task, number] = _after(blocks, made) if made else 0
        return Program(
            (HEAD.format(place=PLACE, load=LOAD) + body).replace("WIDTH", str(self.width)),
            self.size,
            x,
            self.stages,
            expected,
        )

    def _tasks(self) -> tuple[list[str], list[list[Step]]]:
        """Two tasks, each with a block and a result of its own."""
        before: list[str] = []
        inside: list[str] = []
        made: list[list[Step]] = []
        total = CLUSTERS * self.size * self.width
        for number, header in enumerate(('"default"', f"num_warps={self.choice.choice((1, 2, 4))}")):
            allocations, body, steps = self._sequence(alone=False, most=2)
            if self.choice.random() < 0.6:
                before += allocations
            else:
                body = allocations + body
            lines = [PLACE, LOAD, *body, f"tl.store(out + {total * (1 + number)} + place, acc)"]
            inside += [f"    with tlx.async_task({header}):", *(f"        {line}" for line in lines)]
            made.append(steps)
        # The end of a copy is known to who gets it alone: its source must live until the cluster has met.
        options = "no_ending_cluster_sync=True" if not self.copies and self.choice.random() < 0.4 else ""
        return [*before, f"with tlx.async_tasks({options}):", *inside], made


def _after(blocks: np.ndarray, steps: Sequence[Step]) -> np.ndarray:
    found = blocks.copy()
    for step in steps:
        found = step(found)
    return found


def program(number: int) -> Program:
    """The program of a number."""
    return Writer(number).program()


def trial(number: int) -> Ending:
    """Run the program of a number at its stages."""
    made = program(number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"clusters{number}.py"
        path.write_text(made.text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for stage in made.stages:
            if stage == "ptx" and INSTALLED is None:
                continue
            if (wrong := _wrong(module.kernel, made, stage)) is not None:
                return Ending("wrong", f"at {stage}: {wrong}")
    return Ending("ok")


def _wrong(kernel: Any, made: Program, stage: str) -> str | None:
    out = np.zeros_like(made.expected)
    schedule = "round-robin" if stage == "ptx" else "adversarial"
    try:
        result = interpret(
            kernel, CLUSTERS * made.size, made.x.reshape(-1), out.reshape(-1), 4, stage=stage,
            cluster=(made.size, 1, 1), target="sm_90a", jobs=1, schedule=schedule,
        )  # fmt: skip
    except CompilationError as error:
        return str(error)
    if result.warnings:
        return str(result.warnings[0])
    return None if (out == made.expected).all() else f"{int((out != made.expected).sum())} wrong numbers"


def show(number: int) -> str:
    """The text of a program."""
    return program(number).text


if __name__ == "__main__":
    sys.exit(report("clusters", trial, show))
