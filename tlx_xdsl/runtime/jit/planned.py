"""Repeated launches of specialised kernels: what was worked out once is found by what a launch is given.

A launch with numbers, types and alignments that were there before needs new addresses only (`launch/movable.py`): the
key has everything else, and the plan's conditions and descriptors hold for all launches with it.
"""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from triton import knobs
from triton.runtime.driver import driver

from ..driver.host_values import ALIGNED, is_descriptor
from ..launch.movable import MovableLaunch
from ..specialize.host_part import Described, Given, Memory
from ..specialize.specialized import Specialized

MOST_PLANS = 256
"""Plans of one kernel; all are forgotten where there are more, since numbers then differ from launch to launch."""

_BY_KEY = re.compile(rf"\w+ % {ALIGNED} == 0")
"""Conditions on addresses that the key covers."""

_PLAIN = frozenset((int, float, bool, str, type(None)))


class Plans:
    """Plans of one kernel, by everything of a launch but the addresses of tensors."""

    def __init__(self) -> None:
        self._plans: dict[Any, Plan] = {}
        self._plain: set[Any] = set()

    def key(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, list[int]] | None:
        """Return the key of a launch, and the addresses of its tensors in order; None for what has no plan."""
        parts: list[Any] = [grid]
        addresses: list[int] = []
        try:
            for value in args:
                cls: Any = value.__class__
                parts.append(cls)
                if cls in _PLAIN:
                    parts.append(value)
                else:
                    _add(value, parts, addresses)
            for name, value in kwargs.items():
                parts += (name, value.__class__)
                if value.__class__ in _PLAIN:
                    parts.append(value)
                else:
                    _add(value, parts, addresses)
            key = (driver.active.get_current_device(), *parts)
            hash(key)
        except TypeError:
            return None
        return key, addresses

    def get(self, key: Any) -> Plan | None:
        """Return the plan for a key."""
        return self._plans.get(key)

    def keep(self, key: Any, plan: Plan) -> None:
        """Keep a plan."""
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[key] = plan

    def is_plain(self, key: Any) -> bool:
        """True for a launch that takes the plain kernel, as was found out before."""
        return key in self._plain

    def keep_plain(self, key: Any) -> None:
        """Remember that a launch takes the plain kernel."""
        if len(self._plain) >= MOST_PLANS:
            self._plain.clear()
        self._plain.add(key)


def _add(value: Any, parts: list[Any], addresses: list[int]) -> None:
    """Add an argument that is no number to a key.

    Raises TypeError for one that no plan takes.
    """
    if hasattr(value, "data_ptr"):
        address = value.data_ptr()
        addresses.append(address)
        parts += (value.dtype, address % ALIGNED)
    elif is_descriptor(value):
        if not hasattr(value.base, "data_ptr"):
            raise TypeError("a descriptor without an address")
        address = value.base.data_ptr()
        addresses.append(address)
        parts += (
            tuple(value.shape), tuple(value.strides), tuple(value.block_shape), value.padding, value.base.dtype,
            getattr(value, "round_f32_to_tf32", False), address % ALIGNED,
        )  # fmt: skip
    elif isinstance(value, tuple):
        raise TypeError("tuples of arguments may hold tensors")
    else:
        parts.append(value)


class Plan:
    """A launch whose tensors may lie elsewhere each time. Threads may share it.

    `addressed` has for each address the arguments of the kernel that start there; `at` are the addresses that the
    launch was made with. `memory` has the arguments for which each launch has tensors of its own, with one like them,
    and whether they are zero before a launch and after it.
    """

    def __init__(
        self, compiled: Any, launch: MovableLaunch, addressed: Sequence[Sequence[str]], at: list[int],
        memory: Sequence[tuple[str, Any, bool]] = (),
    ):  # fmt: skip
        self.compiled = compiled
        self._launch = launch
        self._movers: list[list[Callable[[int], None]]] = [
            [launch.mover(name) for name in names] for names in addressed
        ]
        self._at = at
        device = driver.active.get_current_device()
        current: Callable[[int], int] = driver.active.get_current_stream
        self._stream: Callable[[], int] = partial(current, device)
        self._turn = threading.Lock()
        self._memory = [(launch.mover(name), like, is_zero) for name, like, is_zero in memory]
        self._zeros: dict[tuple[int, int], Any] = {}

    def run(self, addresses: list[int]) -> Any:
        """Enqueue the launch on the current stream; return the compiled kernel."""
        stream = self._stream()
        with self._turn:
            if addresses != self._at:
                before, self._at = self._at, []  # in case that a move fails
                for number, (address, movers) in enumerate(zip(addresses, self._movers, strict=True)):
                    if not before or before[number] != address:
                        for move in movers:
                            move(address)
                self._at = addresses
            # What is freed after the launch is given to what follows in the stream.
            _held = [self._moved(number, stream) for number in range(len(self._memory))]
            self._launch(stream)
        return self.compiled

    def _moved(self, number: int, stream: int) -> Any:
        """Give a launch a tensor of its own: zeros stay for the next one in the stream, but not those of a graph."""
        move, like, is_zero = self._memory[number]
        stays = is_zero and not sys.modules["torch"].cuda.is_current_stream_capturing()
        found = self._zeros.get((number, stream)) if stays else None
        if found is None:
            found = (like.new_zeros if is_zero else like.new_empty)(like.numel())
            if stays:
                self._zeros[number, stream] = found
        move(found.data_ptr())
        return found


def plan_of(
    choice: Specialized, compiled: Any, grid: tuple[int, int, int], values: Sequence[Any], tensors: Mapping[str, int]
) -> Plan | None:
    """Return a plan for launches like one with these values; `tensors` has the plain kernel's, with their addresses.

    None for an empty grid, for a kernel that needs scratch memory, and where conditions are on more than alignment.
    """
    names = list(tensors)
    if 0 in grid or not all(_holds_by_key(each, names) for each in choice.host.conditions):
        return None
    parameters = [each.name for each in choice.kernel.source.parameters]
    bound = dict(zip(parameters, values, strict=True))
    launch = compiled.launcher.movable(grid, *compiled.runtime_arguments([bound[name] for name in parameters]))
    if launch.scratch_bytes:
        return None
    addressed: list[list[str]] = [[] for _ in names]
    for parameter, part in zip(parameters, choice.host.parts, strict=True):
        source = part.pointer if isinstance(part, Described) else part.name if isinstance(part, Given) else None
        if source in names:
            addressed[names.index(source)].append(parameter)
    parts = zip(parameters, choice.host.parts, strict=True)
    memory = [(name, bound[name], part.is_zero) for name, part in parts if isinstance(part, Memory)]
    return Plan(compiled, launch, addressed, list(tensors.values()), memory)


def _holds_by_key(condition: str, names: Sequence[str]) -> bool:
    """True where a condition is on numbers, which are in the key, or on the alignment of an address."""
    words = set(re.findall(r"[A-Za-z_]\w*", condition))
    return words.isdisjoint(names) or _BY_KEY.fullmatch(condition) is not None


def hooks_listen() -> bool:
    """Return whether someone listens to launches: then Triton makes them."""
    runtime = cast(Any, knobs.runtime)
    for hook in (runtime.launch_enter_hook, runtime.launch_exit_hook):
        if hook is not None and getattr(hook, "calls", hook):
            return True
    return False
