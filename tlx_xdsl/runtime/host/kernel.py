"""A kernel that is launched on the CPU, as machine code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from tlx_xdsl import wings
from tlx_xdsl.errors import CompilationError

from ..driver.specialization import Target
from ..kernel import Kernel
from ..kernel_call import P, R
from .options import CpuOptions, checked_target, interpreter_arguments

if TYPE_CHECKING:
    from tlx_xdsl.frontend.python.source import Signature
    from tlx_xdsl.grid import Grid

    from ..kernel_call import Launch


class HostLauncher(Protocol):
    """The part of a wing that runs a kernel on arrays in this process's memory (`Wing.launchers`).

    It is made with the kernel's source and the defaults of the options.
    """

    def launch(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the kernel on all programs of a grid, and return what has run; `kwargs` is used up."""
        ...

    def bind(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any]:
        """Compile, read the arguments, and return a launch that repeats."""
        ...

    def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compile what a launch with these arguments would run, and return it."""
        ...

    def for_types(
        self, signature: Mapping[str, Signature], constexprs: Mapping[str, Any], *, debug: bool = False
    ) -> Callable[[Sequence[Any], tuple[int, int, int]], None]:
        """Compile for types, and return what launches on numbers, addresses among them, and the sizes of a grid."""
        ...


class CpuKernel(Kernel[P, R]):
    """A kernel of tlx_xdsl: `kernel[grid](*args, **constexprs_and_options)` runs it on arrays in the CPU's memory.

    Arrays are numpy's, or tensors of torch. Options of launches on GPUs (`num_warps`, ...) change nothing.
    `checks=True` has every access checked, and `target="interpreter"` runs the interpreter instead.

    Where Triton's runtime has refused the function, a launch on the CPU is what is left.

    Raises TypeError for what is no function, and ValueError for an unknown target.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        noinline: bool = False,
        passes: Iterable[str] = (),
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        target: Target | None = None,
        checks: bool = False,
    ):
        super().__init__(
            fn, noinline=noinline, passes=passes, do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
        )  # fmt: skip
        self.target: Target | None = checked_target(target)
        """What runs the kernel where a launch says nothing else; None: what its arguments are made for."""
        self.refused: str | None = None
        """Why Triton's runtime did not take the kernel, in Triton's words."""
        self._defaults = CpuOptions(checks, bool(debug))

    @cached_property
    def arg_names(self) -> list[str]:
        """The names of the parameters, in order."""
        return list(self.source.signature.parameters)

    @cached_property
    def on_cpu(self) -> HostLauncher:
        """The kernel's launches on the CPU."""
        # From Python 3.12 on cached_property has no lock: of the threads that come first one makes it for all.
        return self.__dict__.setdefault("on_cpu", wings.launcher("cpu")(self.source, self._defaults))

    def _not_launchable(self) -> CompilationError:
        if self.refused is not None:
            return CompilationError(f"the kernel '{self.source.name}' can't be launched: Triton said {self.refused}")
        return CompilationError(
            f"the kernel '{self.source.name}' can't be launched on a GPU: Triton is not installed",
            notes=("pip install 'tlx-xdsl[nvidia]' (Linux only); on arrays in the CPU's memory it runs without",),
        )

    def __getitem__(self, grid: Grid) -> Launch:
        """The kernel on a grid of programs: one to three numbers, or a function of the arguments by name."""
        launch = partial(self._launch_on, grid)
        setattr(launch, "__wrapped__", self.launch_shape)  # noqa: B010
        return launch

    def _launch_on(self, grid: Grid, /, *args: Any, **kwargs: Any) -> Any:
        if self.target or "target" in kwargs:
            target = self.target_of(kwargs)
            if target == "interpreter":
                return self.interpret(grid, *args, **interpreter_arguments(kwargs, self.arg_names))
            if target == "gpu":
                raise self._not_launchable()
        if self.refused is not None:
            from .memory import are_in_cpu_memory

            if not are_in_cpu_memory((*args, *kwargs.values())):
                raise self._not_launchable()
        return self.on_cpu.launch(grid, args, kwargs)

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on `grid`, or only compile: what autotuners and heuristics call."""
        return self.on_cpu.compile(args, kwargs) if warmup else self._launch_on(grid, *args, **kwargs)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile what a launch with these arguments would run, and return it."""
        return self.on_cpu.compile(args, kwargs)

    def bind(self, grid: Grid, /, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Compile, read the arguments, and return a launch that repeats with almost no work around it.

        Takes what `kernel[grid](...)` takes. Arrays are read by address and numbers by value, all of them now.
        """
        return self.on_cpu.bind(grid, args, kwargs)

    def target_of(self, kwargs: Mapping[str, Any]) -> Target | None:
        """The target that a launch names; a parameter of that name is no option."""
        if "target" in kwargs and "target" not in self.arg_names:
            return checked_target(kwargs["target"])
        return self.target
