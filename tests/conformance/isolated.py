"""Run a function on many inputs in forked processes: one that dies costs its input, not the run."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
BATCH = 100
"""Inputs per process: a few, so that what a library keeps for each does not add up."""
SECONDS = 60
"""The time that one input may take."""


@dataclass
class _Child:
    """A process, the numbers of its inputs, and the file that it writes a line to for each."""

    numbers: list[int]
    pid: int = 0
    answers: Path = field(default_factory=lambda: Path(tempfile.mkstemp(suffix=".jsonl")[1]))


def run_isolated(
    function: Callable[[T], Any], inputs: Sequence[T], jobs: int, *, batch: int = BATCH, seconds: int = SECONDS
) -> list[Any]:
    """Return what `function` gives for each input, as JSON holds it; `{"died": how}` where its process ended.

    A process takes `batch` inputs, and has `seconds` for each.
    """
    answers: list[Any] = [None] * len(inputs)
    todo = [list(range(start, min(start + batch, len(inputs)))) for start in range(0, len(inputs), batch)]
    running: dict[int, _Child] = {}
    while todo or running:
        while todo and len(running) < jobs:
            child = _Child(todo.pop(0))
            child.pid = _start(child, function, inputs, seconds)
            running[child.pid] = child
        pid, status = os.wait()
        child = running.pop(pid)
        done = [json.loads(line) for line in child.answers.read_text().splitlines()]
        child.answers.unlink()
        for number, answer in zip(child.numbers, done, strict=False):
            answers[number] = answer
        if left := child.numbers[len(done) :]:
            answers[left[0]] = {"died": f"signal {status & 127}" if status & 127 else f"status {status >> 8}"}
            if left[1:]:
                todo.insert(0, left[1:])
    return answers


def _start(child: _Child, function: Callable[[T], Any], inputs: Sequence[T], seconds: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    with child.answers.open("w") as stream:
        for number in child.numbers:
            signal.alarm(seconds)
            print(json.dumps(function(inputs[number])), file=stream, flush=True)
    os._exit(0)
