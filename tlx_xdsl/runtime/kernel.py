"""A kernel with its source: compiled to text or run on the CPU, without Triton and without a GPU."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from tlx_xdsl.by_name import ByName
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource

from .driver.specialization import pass_list
from .kernel_call import LaunchShape, P, R, Signed, forwarded, taking
from .simulate.options import check_options, run_options

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec, TypeVar, overload

    from tlx_xdsl.frontend.python.source import Signature
    from tlx_xdsl.grid import Grid
    from tlx_xdsl.timing.predict import Prediction
    from tlx_xdsl.timing.timeline import Timeline

    from .check.report import Report
    from .clock.why_slow import Explained
    from .driver.compilation import CompiledText
    from .kernel_call import Launch
    from .measure.profile_report import Profile
    from .simulate.interpret import Interpretation

    Rest = ParamSpec("Rest")
    Result = TypeVar("Result")


class Kernel(ByName, Signed[P, R]):
    """A function that is compiled by tlx_xdsl; `source` is what was written.

    Raises TypeError for what is no function.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        noinline: bool = False,
        passes: Iterable[str] = (),
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    ):
        # What a decorator wrapped around the function plays no part: the source is what counts.
        fn = inspect.unwrap(fn)
        if not inspect.isfunction(fn):
            raise TypeError(f"tlx_xdsl.jit takes a function made by 'def', found {fn!r}")
        functools.update_wrapper(self, fn)
        self.source = KernelSource(
            fn, noinline, pass_list(passes),
            frozenset(do_not_specialize or ()), frozenset(do_not_specialize_on_alignment or ()),
        )  # fmt: skip

    @forwarded("tlx_xdsl.runtime.compile_kernel")
    def compile(
        self,
        /,
        *args: Any,
        signature: Mapping[str, Signature] | None = None,
        constexprs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        target: str = "sm_90a",
        num_warps: int = 4,
        num_ctas: int = 1,
        cluster: tuple[int, int, int] = (1, 1, 1),
        triton_version: str | None = None,
        passes: Iterable[str] = (),
        **named: Any,
    ) -> CompiledText:
        """Compile the kernel to text, without Triton or a GPU: `kernel.compile(x, y, n, BLOCK=64)`.

        The arguments are those of a launch, whose types and constants are taken, or the types themselves: `signature`,
        also as the first argument, is a mapping from the names of runtime arguments to types in Triton's spelling
        (`*fp16`, `i32`, `tensordesc<fp16[128, 64]>`), and `constexprs`, also as the second, has the value of each
        compile-time one. `cluster` is in CTAs along x, y and z. `passes` are passes of other packages, such as
        `["after:triton-tlx-fixup=my-pass"]` (docs/plug-ins.md). Where a parameter has the name of an option,
        `options={"target": "sm_100a"}` means the option.

        Raises CompilationError, located in the kernel, for every fault in it; TypeError for arguments that do not fit.
        """
        ...

    @forwarded("tlx_xdsl.runtime.compile_kernel")
    def signature_of(self, /, *args: Any, options: Mapping[str, Any] | None = None, **named: Any) -> dict[str, Any]:
        """The entry of a file's `TLX_COMPILE` that fits launches with these arguments.

        Types are those of the values: an int is an i32 where that holds it, a float an fp32, and what is a multiple of
        16, or an array at such an address, says so. Options of the table, such as `num_warps=8`, are taken over.

        Raises TypeError for arguments that do not fit.
        """
        ...

    def compile_text(
        self,
        *args: Any,
        stage: Literal["ttir", "ttgir"] = "ttgir",
        **named: Any,
    ) -> str:
        """The text of one stage; the arguments are those of `compile`."""
        compiled = self.compile(*args, **named)
        return compiled.ttir if stage == "ttir" else compiled.ttgir

    @taking(run_options)
    @forwarded("tlx_xdsl.runtime.simulate.interpret")
    def interpret(self, grid: Grid, /, *args: Any, **named: Any) -> Interpretation:
        """Run the kernel on the CPU, on numpy arrays, with all checks: `kernel.interpret(grid, x, y, n, BLOCK=64)`.

        `grid` is the number of programs, along one to three axes, or a function of the arguments by name. The rest
        are the kernel's arguments, in order or named, and options, whose meaning `tlx_xdsl.interpret` has.

        Raises CompilationError for an error in the kernel, and its subclass `Fault` for what it does wrong in the run;
        TypeError and ValueError for arguments that do not fit.
        """
        ...

    @taking(check_options)
    @forwarded("tlx_xdsl.runtime.check.run")
    def check(self, grid: Grid, /, *args: Any, **named: Any) -> Report:
        """Run the kernel on the CPU in all orders that matter, and report what is wrong: see `tlx_xdsl.check`."""
        ...

    @forwarded("tlx_xdsl.runtime.profile")
    def profile(
        self,
        grid: Grid,
        /,
        *args: Any,
        flops: float | None = None,
        bytes: float | None = None,
        seconds: float = 0.5,
        timeline: bool = False,
        options: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> Profile:
        """Time launches: `print(kernel.profile(grid, x, y, n, BLOCK=64, num_warps=8))`.

        With tensors of a GPU, launches are timed for about `seconds`, each with an empty L2 cache. With arrays in the
        CPU's memory the kernel is compiled, and the time is that of a model; the report says which. `flops` and `bytes`
        are what a launch must do and move, for the rates; without `flops` those of the matrix products count. With
        `timeline` the report's `timeline` says what warps of a few CTAs did, and when, measured by probes in the
        final PTX (GPU only; its notes say what the probes cost). Where a parameter has the name of an option,
        `options={"num_warps": 8}` means the option.

        Raises CompilationError for an error in the kernel; TypeError and ValueError for arguments that do not fit.
        """
        ...

    @forwarded("tlx_xdsl.runtime.clock.kernel")
    def predict(
        self,
        grid: Grid,
        /,
        *args: Any,
        chip: str | None = None,
        hertz: float | None = None,
        options: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> Prediction:
        """Predict how long a launch takes on a GPU, in cycles: `kernel.predict(grid, x, y, n, BLOCK=64).cycles`.

        The arguments are those of a launch, and its options (`num_warps`, `num_stages`, `cluster`, `target`, ...).
        What arrays hold matters only where addresses, branches or lengths depend on it: `numpy.empty` or torch's
        device `meta` will do for all else, and a tensor of a GPU is not copied. Nothing is written. `chip` is `H200`,
        `H100` or `B200`: by default what the target is of. `hertz` is the clock of the multiprocessors while the
        launch runs; without it the clock follows from what the tensor cores do. The kernel is compiled, for which
        stock Triton is needed, and no GPU.

        Raises CompilationError for an error in the kernel; TypeError and ValueError for arguments that do not fit.
        """
        ...

    @forwarded("tlx_xdsl.runtime.clock.kernel")
    def timeline(
        self,
        grid: Grid,
        /,
        *args: Any,
        chip: str | None = None,
        hertz: float | None = None,
        options: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> Timeline:
        """Predict what warps, tensor cores, TMA and barriers do, and when; a notebook shows it (docs/clock.md).

        The arguments are those of `predict`. With `ranks=N`, or a symmetric tensor, they are those of `interpret`: then
        the launch is run on simulated ranks, and the timeline says what each does beside the others, in steps.

        Raises as `predict` does.
        """
        ...

    @forwarded("tlx_xdsl.runtime.clock.kernel")
    def why_slow(
        self, grid: Grid, /, *args: Any, chip: str | None = None, hertz: float | None = None,
        options: Mapping[str, Any] | None = None, **named: Any,
    ) -> Explained:  # fmt: skip
        """Find what costs a launch time, as `predict` takes it: `print(kernel.why_slow(grid, x, y, n, BLOCK=64))`."""
        ...

    def is_launchable(self) -> bool:
        """Return whether Triton's runtime can take the kernel: it is installed, and the kernel's text is at hand."""
        if importlib.util.find_spec("triton") is None:
            return False
        try:
            parameters = self.source.parameters
        except CompilationError:
            return False
        return all(parameter.name.isidentifier() for parameter in parameters)

    def __getitem__(self, grid: Grid) -> Launch:
        """The kernel on a grid of programs. Refused here: this one was made to be read."""
        raise self._not_launchable()

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compile for a launch. Refused here, as launches are."""
        raise self._not_launchable()

    def bind(self, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """Prepare a launch. Refused here, as launches are."""
        raise self._not_launchable()

    def _not_launchable(self) -> CompilationError:
        # Says where the source is missing.
        assert self.source.parameters is not None
        return CompilationError(f"the kernel '{self.source.name}' was made to be read only, not to be launched")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Refuse: a kernel is compiled and launched. Other kernels call it, and get what its function returns."""
        raise RuntimeError(
            f"the kernel '{self.source.name}' can't be called like a Python function: {self.source.name}[grid](...) "
            f"launches it, and {self.source.name}.interpret(grid, ...) runs it on the CPU"
        )

    if TYPE_CHECKING:
        # A method of an aggregate: the frontend passes the instance.
        @overload
        def __get__(self, instance: None, owner: Any = None, /) -> Kernel[P, R]: ...
        @overload
        def __get__(
            self: Kernel[Concatenate[Any, Rest], Result], instance: object, owner: Any = None, /
        ) -> Kernel[Rest, Result]: ...
        def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...

    @functools.cached_property
    def launch_shape(self) -> LaunchShape:
        """Return what a launch looks like to `inspect.signature`."""
        return LaunchShape(self.source)

    def _repr_html_(self) -> str:
        """The kernel for a notebook: with its IR, where its file says how it is compiled."""
        from .driver.compilation import Specialization, frontend_module
        from .driver.defaults import kernel_defaults
        from .show.pages import error_page, kernel_page

        source = self.source
        try:
            defaults = kernel_defaults(source.filename, source.fn.__globals__, source.name)
            kinds = {**defaults.signature, **defaults.constexprs}
            if not kinds:
                return kernel_page(source, kinds, None)
            known = {each.name for each in dataclasses.fields(Specialization)}
            options = {name: value for name, value in defaults.options.items() if name in known}
            specialization = Specialization(defaults.signature, defaults.constexprs, **options)
            return kernel_page(source, kinds, frontend_module(source, specialization))
        except CompilationError as error:
            return error_page(source, error)

    def __repr__(self) -> str:
        """Return the kernel's name, its parameters and its file."""
        try:
            parameters = ", ".join(
                f"{each.name}{': constexpr' if each.is_constexpr else ''}" for each in self.source.parameters
            )
        except CompilationError:
            parameters = "..."
        return f"<tlx_xdsl.Kernel {self.source.name}({parameters}) of {self.source.filename}>"
