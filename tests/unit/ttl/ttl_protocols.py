"""Random threads that exchange blocks, as programs of plain tuples and as kernels.

A program of a thread is a list of statements: `("reserve", buffer, blocks)`, `push`, `wait`, `pop` of the same form,
and `("for", count, body)`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.dialects.ttl import KernelOp

Statement = tuple[Any, ...]
Program = list[Statement]

TILE = "!ttcore.tile<32x32, f32>"
RELEASES = {"reserve": "push", "wait": "pop"}


def flat(program: Program) -> Iterator[Statement]:
    """The steps of a program, one after the other."""
    for statement in program:
        if statement[0] == "for":
            for _ in range(statement[1]):
                yield from flat(statement[2])
        else:
            yield statement


def kernel_of(programs: Sequence[Program], factors: Sequence[int]) -> KernelOp:
    """A kernel with these threads, the second one of which computes."""
    lines = ["ttl.kernel @k() attributes {grid = #ttcore.grid<1x1>} {"]
    types = [f"!ttl.cb<[1, 1], {TILE}, {factor}>" for factor in factors]
    for number, (factor, type_) in enumerate(zip(factors, types, strict=True)):
        lines.append(f"%b{number} = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor={factor} : {type_}")
    numbers = count()
    for number, program in enumerate(programs):
        kind = "compute_thread" if number == 1 else "datamovement_thread"
        lines.append(f"ttl.{kind} @t{number} {{")
        lines.extend(_lines(program, types, numbers))
        lines.append("ttl.thread_return\n}")
    lines.append("ttl.kernel_return\n}")
    module = parse_module("\n".join(lines), filename="kernel.mlir")
    return next(op for op in module.walk() if isinstance(op, KernelOp))


def _lines(program: Program, types: Sequence[str], numbers: Iterator[int]) -> Iterator[str]:
    for statement in program:
        match statement:
            case ("for", trips, body):
                yield f"affine.for %i = 0 to {trips} {{"
                yield from _lines(body, types, numbers)
                yield "}"
            case ("reserve" | "wait" as kind, buffer, blocks):
                attribute = "" if blocks == 1 else f" {{blocks = {blocks} : i64}}"
                shape = f"tensor<1x1x{TILE}>" if blocks == 1 else f"tensor<{blocks}x1x1x{TILE}>"
                yield f"%v{next(numbers)} = ttl.cb_{kind} %b{buffer}{attribute} : {types[buffer]} -> {shape}"
            case (kind, buffer, blocks):
                yield f"ttl.cb_{kind} %b{buffer}" + ("" if blocks == 1 else f" {{blocks = {blocks} : i64}}")


def random_programs(rng: random.Random) -> tuple[list[Program], list[int]]:
    """Two or three threads, with one producer and one consumer for each of one to four buffers."""
    threads = rng.choice([2, 3, 3])
    buffers = rng.randint(1, 4)
    factors = [rng.choice([1, 2, 2, 3, 4]) for _ in range(buffers)]
    sides: list[list[tuple[str, int]]] = [[] for _ in range(threads)]
    for buffer in range(buffers):
        producer, consumer = rng.sample(range(threads), 2)
        sides[producer].append(("reserve", buffer))
        sides[consumer].append(("wait", buffer))
    counts = [rng.choice([1, 2, 2, 3, 4]) for _ in range(buffers)]
    if rng.random() < 0.3:
        # One buffer after the other.
        return [[step for side in own for step in _program(rng, [side], counts)] for own in sides], factors
    return [_program(rng, own, counts) for own in sides], factors


def _program(rng: random.Random, sides: list[tuple[str, int]], counts: list[int]) -> Program:
    """A thread that moves about `counts` blocks of each of its buffers, in some order."""
    program: Program = []
    left = {side: counts[side[1]] + rng.choice([0] * 12 + [1, -1]) for side in sides}
    while any(number > 0 for number in left.values()):
        group = [side for side, number in left.items() if number > 0]
        group = rng.sample(group, rng.randint(1, len(group)))
        trips = rng.randint(1, min(left[side] for side in group))
        for side in group:
            left[side] -= trips
        body = _body(rng, group)
        program.extend(body if trips == 1 else [("for", trips, body)])
    return program


def _body(rng: random.Random, group: list[tuple[str, int]]) -> Program:
    """One block of each buffer, acquired and given back in a random order."""
    acquires: Program = [(kind, buffer, 1) for kind, buffer in group]
    if rng.random() < 0.5:
        return [step for op in acquires for step in (op, (RELEASES[op[0]], op[1], 1))]
    releases: Program = [(RELEASES[kind], buffer, 1) for kind, buffer in group]
    rng.shuffle(releases)
    return acquires + releases
