"""Run the C++ of a program on this computer, with the checks of `include/machine`.

A run has a process of its own, so that a fault in a kernel is an error here. Threads take turns, in an order that the
seed says: 0 lets each run until it has to wait, another one also lets writes of the NoC land at any time.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from typing import Any, TypeAlias

from .build import Compiled, compile_many as _compile_many, find_compiler, machine
from .program import Manifest, MetaliumError, Program

__all__ = ["MetaliumError", "Program", "compile_many", "find_compiler", "run"]

Pages: TypeAlias = Any
"""An object with the buffer protocol, writable: the pages of a tensor."""

_FOUND = 3
"""The exit status of the machine for an error in a kernel."""


def compile_many(programs: list[Program]) -> None:
    """Compile programs in one call of the compiler, so that `run` finds them in the cache."""
    _compile_many(programs)


def run(
    sources: Mapping[str, str],
    manifest: Manifest,
    tensors: Mapping[str, Pages],
    *,
    seed: int = 0,
    capacity: int | None = None,
    timeout: float = 60,
) -> None:
    """Run a program; what it writes is in `tensors` afterwards.

    `capacity` is the number of tiles in DST, where it is not to be that of the manifest. Raises MetaliumError, at the
    kernel's line, for what does not compile and for what the machine's checks find.
    """
    program = Program(sources, manifest)
    (compiled,) = _compile_many([program])
    views = [memoryview(tensors[tensor["name"]]).cast("B") for tensor in manifest["tensors"]]
    description = program.description(seed, capacity, [view.nbytes for view in views])
    output = _run_machine(compiled, description.encode() + b"".join(views), timeout)
    start = 0
    for view in views:
        if not view.readonly:
            view[:] = output[start : start + view.nbytes]
        start += view.nbytes


_PRINTED = "DPRINT\t"
"""What a line of text of a kernel begins with."""


def _run_machine(compiled: Compiled, data: bytes, timeout: float) -> bytes:
    command = [str(machine()), str(compiled.library), compiled.entries]
    try:
        result = subprocess.run(command, input=data, capture_output=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise MetaliumError(f"the kernels did not end in {timeout:g} s: a loop does not end") from None
    said = result.stderr.decode(errors="replace").splitlines()
    for line in said:
        if line.startswith(_PRINTED):
            print(line.removeprefix(_PRINTED))
    error = "\n".join(line for line in said if not line.startswith(_PRINTED))
    if result.returncode == _FOUND:
        file, line, message = error.split("\t", 2)
        raise MetaliumError(message, file, int(line))
    if result.returncode < 0:
        raise MetaliumError(f"a kernel ended with the signal {signal.Signals(-result.returncode).name}")
    if result.returncode:
        raise MetaliumError(f"the machine failed: {error}")
    return result.stdout
