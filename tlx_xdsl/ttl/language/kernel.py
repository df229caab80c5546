"""Kernels, their threads and the grid of cores, and the mark of TTL's functions and classes.

The frontend knows them by it. A function without a body states name, signature and meaning; the frontend gives a call
its meaning (`ttl/frontend/`), and a call outside of a kernel raises a RuntimeError. Coordinates of cores are (x, y):
column first, counted from 0 within the grid of the kernel.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from tlx_xdsl.by_name import ByName

__all__ = [
    "Kernel",
    "Program",
    "compute",
    "core",
    "datamovement",
    "grid_size",
    "kernel",
    "node",
    "operation",
    "signpost",
]

F = TypeVar("F", bound=Callable[..., Any])
ClassT = TypeVar("ClassT", bound=type)

NAME = "__ttl_builtin__"
"""The attribute that marks a part of the language; it holds the qualified name, such as `ttl.math.exp`."""


def builtin(namespace: str = "ttl") -> Callable[[F], F]:
    """Mark a function as part of the language, under the name `namespace.name`."""

    def mark(fn: F) -> F:
        qualified = f"{namespace}.{fn.__name__}"

        @functools.wraps(fn)
        def outside(*args: Any, **kwargs: Any) -> NoReturn:
            raise RuntimeError(f"{qualified} has a meaning only inside a kernel that @ttl.kernel compiles")

        setattr(outside, NAME, qualified)
        return outside  # pyright: ignore[reportReturnType]

    return mark


def kernel_object(cls: ClassT) -> ClassT:
    """Mark a class whose instances kernels make; outside of a kernel, making one raises a RuntimeError.

    The signature is that of its `__init__`.
    """
    qualified = f"ttl.{cls.__name__}"
    setattr(cls, NAME, qualified)
    signature = cls.__init__

    @functools.wraps(signature)
    def outside(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{qualified} exists only inside a kernel that @ttl.kernel compiles")

    setattr(cls, "__init__", outside)  # noqa: B010
    return cls


def builtin_name(value: object) -> str | None:
    """The qualified name of a part of the language, or None for anything else."""
    return getattr(value, NAME, None)


RUNTIME = "tlx_xdsl.ttl.runtime"
"""The module whose `run(kernel, *arguments, **options)` is the call of a kernel, which loads it."""


@dataclass(eq=False)
class Kernel(ByName):
    """A kernel, as `@ttl.kernel` makes it of a function."""

    fn: Callable[..., None]
    grid: Any = (1, 1)
    """The cores that run it: (columns, rows), or a word; checked when the kernel is compiled."""
    fp32_dest_acc_en: Any = False
    dst_full_sync_en: Any = False
    memory_space: Any = "L1"
    tiled: Any = True
    options: Any = None
    """tt-lang's options of its compiler, as on a command line."""
    math_fidelity: Any = None
    others: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of the decorator that no option has; an error when the kernel is compiled."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.fn.__name__

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Compile the kernel for the shapes and element types of `arguments`, and run it on an emulated device.

        `arguments` are arrays of NumPy or tensors of PyTorch, of two or more dimensions, which the kernel reads and
        writes.
        `options` are those of `tlx_xdsl.ttl.runtime.run`, such as the machine.

        Raises CompilationError for an error in the kernel.
        """
        return importlib.import_module(RUNTIME).run(self, *arguments, **options)

    def launch_ttnn(self, *arguments: Any, options: Any = None) -> Any:
        """Run the kernel on the card that holds these tensors of `ttnn`; see `tlx_xdsl.ttl.runtime.launch_ttnn`."""
        return importlib.import_module(RUNTIME).launch_ttnn(self, *arguments, options=options)


def kernel(
    fn: Callable[..., None] | None = None,
    *,
    grid: Any = (1, 1),
    fp32_dest_acc_en: Any = False,
    dst_full_sync_en: Any = False,
    memory_space: Any = "L1",
    tiled: Any = True,
    options: Any = None,
    math_fidelity: Any = None,
    **others: Any,
) -> Any:
    """Make a kernel of a function: `@ttl.kernel(grid=(2, 2))`.

    The function's parameters are tensors in the device's memory. Its body is run by the compiler: it makes circular
    buffers, pipes and semaphores, and defines the threads that each core runs, at most one with `@ttl.compute()` and
    two with `@ttl.datamovement()`.

    - `grid`: columns and rows of the cores that run the kernel, or `"auto"` or `"full"` for all that there are.
    - `fp32_dest_acc_en`: registers of the compute thread hold f32; half as many tiles fit.
    - `dst_full_sync_en`: the compute thread has all registers at once, twice as many; packing no longer overlaps.
    - `memory_space`: where circular buffers are; there is no other place than `"L1"`, the core's own memory.
    - `tiled`: arrays become tensors of tiles; with False, tensors of rows.
    - `options`: tt-lang's options, `"--no-ttl-maximize-dst"`; those that change no result are read and change nothing.
    - `math_fidelity`: passes of the matrix unit, `"HiFi4"` to `"LoFi"`; the machines here compute exactly.

    Options are checked when the kernel is compiled: a wrong one is a CompilationError.
    """

    def decorate(function: Callable[..., None]) -> Kernel:
        return Kernel(
            function, grid, fp32_dest_acc_en, dst_full_sync_en, memory_space, tiled, options, math_fidelity, others
        )

    return decorate if fn is None else decorate(fn)


operation = kernel
"""The later spelling of `kernel`."""


@builtin()
def compute() -> Callable[[F], F]:
    """Mark the function that the compute thread of each core runs; it has no parameters."""
    raise AssertionError


@builtin()
def datamovement() -> Callable[[F], F]:
    """Mark a function that a data movement thread of each core runs; it has no parameters."""
    raise AssertionError


@builtin()
def Program(*threads: Any) -> Any:
    """The threads of a kernel, `ttl.Program(compute, read, write)(a, b, c)`: an older spelling of what is known."""


@builtin()
def core(dims: Any = 2) -> Any:
    """Return where the core that runs this is: `x, y` with `dims=2`, its number `x + y * columns` with `dims=1`."""


@builtin()
def node(dims: Any = 2) -> Any:
    """The later spelling of `core`."""


def grid_size(dims: int = 2) -> Any:
    """The grid of the kernel, known at compile time: columns and rows with `dims=2`, all cores with `dims=1`.

    On the host, it is the grid of the kernel that was compiled last, and the whole device's before any was.
    """
    columns, rows = LAST_GRID[-1]
    if dims not in (1, 2):
        raise ValueError(f"a grid has two dimensions: 'dims' is 1 or 2, found {dims}")
    return columns * rows if dims == 1 else (columns, rows)


setattr(grid_size, NAME, "ttl.grid_size")

FULL_GRID = (8, 8)
"""Columns and rows of the cores of a device for `grid="full"`, as far as nothing else is said: those of a Wormhole."""

LAST_GRID: list[tuple[int, int]] = [FULL_GRID]
"""The grid of the kernel that was compiled last."""


@builtin()
def signpost(name: Any) -> Any:
    """Name a part of a thread for a profiler: `with ttl.signpost("load"):`; the machines here do not measure."""
