"""`kernel[grid](...)` and `kernel.bind(...)` on the CPU.

A launch reads its arguments once: they give the key of a specialisation, which is compiled when it is first met, and
the numbers that it runs on (`arguments`). All that depends on the kernel alone is prepared when the first launch of it
comes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tlx_xdsl.errors import BREAKPOINT, InputOverflowError, InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource, Parameter, Signature
from tlx_xdsl.grid import Grid, sizes_of
from tlx_xdsl.runtime.driver.fingerprint import GlobalValues, kernel_fingerprint
from tlx_xdsl.runtime.host.options import CpuOptions, cpu_options

from .arguments import MISSING, READERS, ReadOnly, flat_types, read_constant, reader_of, split
from .build import CpuSpecialization, load_program, object_key
from .packing import Packer
from .program import Program

if TYPE_CHECKING:
    from .profile import LineProfile

_NO_OPTIONS = CpuOptions()


class _Building:
    """Held while something is compiled: threads that want the same get one program."""

    lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # A child must not wait for a thread that it does not have.
    os.register_at_fork(after_in_child=lambda: setattr(_Building, "lock", threading.RLock()))


@dataclass(frozen=True)
class _Specialized:
    """Program for a key of specialization, and what packs its arguments."""

    program: Program
    pack: Packer
    may_stop: bool
    """Whether a program may open the debugger."""
    wanted: CpuSpecialization


class BoundLaunch:
    """A kernel, its grid and its arguments: calling it launches, and returns when all programs have run.

    The arguments stay alive with it, and are read and written where they were when it was made.
    """

    def __init__(self, program: Program, grid: tuple[int, int, int], packed: bytes, arguments: Sequence[Any]):
        self.program = program
        self.grid = grid
        self._packed = packed
        self._arguments = arguments

    def __call__(self) -> None:
        """Run all programs. Raises Fault, located in the kernel, where an assertion or a check fails."""
        self.program.run(self._packed, self.grid)


class CpuLauncher:
    """Launches a kernel on the CPU."""

    def __init__(self, source: KernelSource, defaults: CpuOptions = _NO_OPTIONS):
        self._source = source
        self._defaults = defaults
        self._rules = rules_of(source)
        self._names = tuple(rule.name for rule in self._rules)
        self._known: dict[Any, _Specialized] = {}
        self._programs: dict[str, Program] = {}
        self._globals: GlobalValues | None = None

    def launch(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """Run the kernel on all programs of a grid; `kwargs` is used up. Returns what ran.

        Raises CompilationError for an error in the kernel and its subclass Fault for what fails while it runs;
        TypeError, ValueError and KeyError for arguments and options that do not fit.
        """
        found, packed, sizes = self._prepared(grid, args, kwargs)
        if not found.may_stop:
            found.program.run(packed, sizes)
            return found.program
        # The debugger takes a while to load.
        from .debugging import run_or_debug

        def run_on() -> None:
            again, packed, _ = self._prepared(grid, args, kwargs, breakpoints=False)
            again.program.run(packed, sizes)

        given = {**dict(zip(self._names, args, strict=False)), **kwargs}
        run_or_debug(self._source, sizes, given, lambda: found.program.run(packed, sizes), run_on)
        return found.program

    def bind(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundLaunch:
        """Compile, read the arguments, and return a launch that repeats with almost no work around it.

        It stops at no breakpoint.
        """
        found, packed, sizes = self._prepared(grid, args, kwargs, breakpoints=False)
        return BoundLaunch(found.program, sizes, packed, (args, kwargs))

    def profile(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LineProfile:
        """Run the kernel a few times on one thread, and return what each of its lines takes.

        Raises as `launch` does, and InputError on a CPU without a cycle counter for programs.
        """
        from .profile import load_profiled, profile

        found, packed, sizes = self._prepared(grid, args, kwargs, breakpoints=False)
        return profile(*load_profiled(self._source, found.wanted), packed, sizes)

    def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """The program that a launch with these arguments would run."""
        return self._prepared(0, args, kwargs)[0].program

    def for_types(
        self, signature: Mapping[str, Signature], constexprs: Mapping[str, Any], *, debug: bool = False
    ) -> Callable[[Sequence[Any], tuple[int, int, int]], None]:
        """Compile for types, before there are arguments, as a compiler wants it that writes the launches.

        `signature` has the type of each runtime argument in Triton's spelling, in the order of the parameters. Launch
        what is returned with a number for each, a pointer's being its address, and with the three sizes of a grid.

        Raises CompilationError, located in the kernel, for an error in it.
        """
        wanted = CpuSpecialization(signature, constexprs, debug=debug)
        with _Building.lock:
            program = load_program(self._source, wanted)
        pack, run = Packer(flat_types(signature), program.metadata, self._rules), program.run
        return lambda slots, sizes: run(pack(slots, ()), sizes)

    def _prepared(
        self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any], *, breakpoints: bool = True
    ) -> tuple[_Specialized, bytes, tuple[int, int, int]]:
        values: Sequence[Any] = args
        rules = self._rules
        if kwargs or len(args) != len(rules):
            kwargs = dict(kwargs)
            values = self._in_order(args, kwargs)
        options = cpu_options(kwargs, self._defaults, self._source.name, self._names) if kwargs else self._defaults
        if not breakpoints:
            options = replace(options, breakpoints=False)
        parts: list[Any] = [options]
        slots: list[Any] = []
        rule = None
        try:
            for rule, value in zip(rules, values, strict=True):
                read = read_constant if rule.is_constexpr else READERS.get(value.__class__) or reader_of(value)
                read(value, parts, slots, rule)
        except InputTypeError as error:
            assert rule is not None
            raise InputTypeError(f"{self._source.name}: '{rule.name}' {error}") from None
        if self._globals and not _still_hold(self._globals):
            self._forget()
        found = self._known.get(key := tuple(parts))
        if found is None:
            found = self._specialized(key, values, slots, options)
        if grid.__class__ is not tuple and callable(grid):
            grid = grid(dict(zip(self._names, values, strict=True)))
        return found, found.pack(slots, values), _sizes_of(grid)

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The value of each parameter; what is left in `kwargs` are options."""
        values = list(args)
        for rule in self._rules[len(args) :]:
            value = kwargs.pop(rule.name, rule.default)
            if value is MISSING:
                raise InputTypeError(f"{self._source.name}: missing a required argument: '{rule.name}'")
            values.append(value)
        if len(values) > len(self._rules):
            raise InputTypeError(
                f"{self._source.name}: too many positional arguments, its parameters are {', '.join(self._names)}"
            )
        if kwargs and (twice := next((name for name in self._names if name in kwargs), None)) is not None:
            raise InputTypeError(f"{self._source.name}: multiple values for argument '{twice}'")
        return values

    def _specialized(
        self, key: tuple[Any, ...], values: Sequence[Any], slots: Sequence[Any], options: CpuOptions
    ) -> _Specialized:
        with _Building.lock:
            if (found := self._known.get(key)) is not None:
                return found
            signature, constexprs, _ = split(self._rules, values)
            stops = options.breakpoints and os.environ.get("PYTHONBREAKPOINT") != "0"
            wanted = CpuSpecialization(
                signature, constexprs, options.checks, options.debug, breakpoints=stops,
                stops_at_prints=stops and options.debugger,
            )  # fmt: skip
            if self._globals is None:
                self._globals = kernel_fingerprint(self._source).global_values
            # Tensors of torch and arrays of numpy have keys of their own, and share their programs.
            content = object_key(self._source, wanted)
            program = self._programs.get(content)
            if program is None:
                program = self._programs[content] = load_program(self._source, wanted, content)
            pack = Packer(flat_types(signature), program.metadata, self._rules)
            for argument, slot in zip(program.metadata.arguments, slots, strict=True):
                if isinstance(slot, ReadOnly) and not argument.is_only_read:
                    raise InputTypeError(
                        f"{self._source.name}: '{argument.name}' is read-only, and the kernel may write it: pass a copy"
                    )
            may_stop = options.debugger or any(site.message.endswith(BREAKPOINT) for site in program.metadata.sites)
            found = self._known[key] = _Specialized(program, pack, may_stop and options.breakpoints, wanted)
            return found

    def _forget(self) -> None:
        """A global that the kernel reads has another value: what was compiled is no more what it says."""
        with _Building.lock:
            self._known, self._programs, self._globals = {}, {}, None


def rules_of(source: KernelSource) -> tuple[Parameter, ...]:
    """The parameters, by which the values of each are read.

    Raises CompilationError for parameters that no launch can give.
    """
    for each in source.parameters:
        if each.is_variadic:
            raise source.error(each.node, f"'{source.name}' can't be launched with '*{each.name}': give each a name")
    return source.parameters


def _sizes_of(grid: Any) -> tuple[int, int, int]:
    """Return the three sizes of a grid whose programs can be counted."""
    x, y, z = sizes = sizes_of(grid)
    if x * y * z >= 1 << 63:
        raise InputOverflowError(f"a grid has less than 2^63 programs, found {grid!r}")
    return sizes


def _still_hold(values: GlobalValues) -> bool:
    """Return whether the globals that a kernel reads are what they were when it was compiled."""
    for (name, _), (value, names) in values.items():
        now = names.get(name, MISSING)
        if now is not value and (now.__class__ is not value.__class__ or now != value):
            return False
    return True
