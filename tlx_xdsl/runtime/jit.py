"""`@tlx_xdsl.jit`: a kernel with its source, ready to be compiled to text; with Triton, one that can be launched."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.source import KernelSource

if TYPE_CHECKING:
    from tlx_xdsl.runtime.compilation import CompiledText
    from tlx_xdsl.runtime.interpret import Grid, Interpretation


class Kernel:
    """A function that is compiled by tlx_xdsl; `source` is what was written.

    Raises TypeError for what is no function.
    """

    def __init__(self, fn: Callable[..., Any], *, noinline: bool = False):
        # What a decorator wrapped around the function plays no part: the source is what counts.
        fn = inspect.unwrap(fn)
        if not inspect.isfunction(fn):
            raise TypeError(f"tlx_xdsl.jit takes a function made by 'def', found {fn!r}")
        functools.update_wrapper(self, fn)
        self.source = KernelSource(fn, noinline)
        self.refused: str | None = None
        """Why Triton's runtime did not take the kernel, in Triton's words."""

    def compile(
        self,
        signature: Mapping[str, str],
        constexprs: Mapping[str, Any] | None = None,
        *,
        target: str = "sm_90a",
        num_warps: int = 4,
        num_ctas: int = 1,
        cluster: tuple[int, int, int] = (1, 1, 1),
        triton_version: str | None = None,
    ) -> CompiledText:
        """Compile the kernel to text, without Triton or a GPU.

        `signature` gives the type of each runtime argument in Triton's spelling (`*fp16`, `i32`,
        `tensordesc<fp16[128, 64]>`), `constexprs` the value of each compile-time one. `cluster` is in
        CTAs along x, y and z.

        Raises CompilationError, located in the kernel, for every fault in it.
        """
        from tlx_xdsl.runtime.compilation import Specialization, compile_text

        wanted = Specialization(signature, constexprs or {}, target, num_warps, num_ctas, cluster)
        return compile_text(self.source, wanted, triton_version=triton_version)

    def compile_text(
        self,
        signature: Mapping[str, str],
        constexprs: Mapping[str, Any] | None = None,
        *,
        stage: Literal["ttir", "ttgir"] = "ttgir",
        **options: Any,
    ) -> str:
        """The text of one stage; the arguments are those of `compile`."""
        compiled = self.compile(signature, constexprs, **options)
        return compiled.ttir if stage == "ttir" else compiled.ttgir

    def interpret(self, grid: Grid, /, *args: Any, **named: Any) -> Interpretation:
        """Run the kernel on the CPU, on numpy arrays: see `tlx_xdsl.interpret`."""
        from tlx_xdsl.runtime.interpret import interpret

        return interpret(self, grid, *args, **named)

    def is_launchable(self) -> bool:
        """Whether Triton's runtime can take the kernel: it is installed, and the kernel's text is at hand."""
        if importlib.util.find_spec("triton") is None:
            return False
        try:
            parameters = self.source.parameters
        except CompilationError:
            return False
        return all(parameter.name.isidentifier() for parameter in parameters)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Refuse: Triton's runtime is what launches."""
        raise self._not_launchable()

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: Triton's runtime is what compiles for a launch."""
        raise self._not_launchable()

    def bind(self, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse: Triton's runtime is what compiles for a launch."""
        raise self._not_launchable()

    def _not_launchable(self) -> CompilationError:
        if importlib.util.find_spec("triton") is None:
            return CompilationError(
                f"the kernel '{self.source.name}' can't be launched: Triton is not installed",
                notes=("pip install 'tlx-xdsl[nvidia]' (Linux only); its method interpret runs it on the CPU",),
            )
        # Says where the source is missing.
        assert self.source.parameters is not None
        if self.refused is not None:
            return CompilationError(f"the kernel '{self.source.name}' can't be launched: Triton said {self.refused}")
        return CompilationError(f"the kernel '{self.source.name}' was made to be read only, not to be launched")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a kernel is compiled and launched, not called."""
        raise RuntimeError(
            f"the kernel '{self.source.name}' can't be called like a Python function; "
            "its method interpret runs it on the CPU"
        )

    def _repr_html_(self) -> str:
        """The kernel for a notebook: with its IR, where its file says how it is compiled."""
        from tlx_xdsl.runtime.show.pages import kernel_page

        return kernel_page(self.source)

    def __repr__(self) -> str:
        """Return the kernel's name and file."""
        return f"<tlx_xdsl.Kernel {self.source.name} of {self.source.filename}>"


class _Reading:
    """Whether kernels are only looked at: then nothing of Triton is needed, which takes its time to load."""

    active = False


@contextlib.contextmanager
def without_launching() -> Generator[None]:
    """Within, `jit` makes kernels that can't be launched, and does not load Triton for them."""
    before, _Reading.active = _Reading.active, True
    try:
        yield
    finally:
        _Reading.active = before


@overload
def jit(fn: Callable[..., Any]) -> Kernel: ...


@overload
def jit(
    *,
    version: Any = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[..., Any]], Kernel]: ...


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Mark `fn` as a kernel, or as a function that kernels call; calls of a `noinline` one stay calls.

    With Triton installed, the kernel is a `triton.runtime.jit.JITFunction` as well: `kernel[grid](...)` launches it,
    Triton's autotuners and heuristics take it, and the options are those of `triton.jit`. Without, or where the text
    of the function is not in a file, it is a plain `Kernel`, which says so when it is launched.

    Raises TypeError for what is no function, and for an unknown option.
    """
    unknown = next((name for name in options if name not in _OPTIONS), None)
    if unknown is not None:
        raise TypeError(f"tlx_xdsl.jit has no option '{unknown}': expected one of {', '.join(_OPTIONS)}")
    if fn is None:
        return lambda fn: _kernel(fn, options)
    return _kernel(fn, options)


_OPTIONS = (
    "version",
    "repr",
    "launch_metadata",
    "do_not_specialize",
    "do_not_specialize_on_alignment",
    "debug",
    "noinline",
)


def _kernel(fn: Callable[..., Any], options: Mapping[str, Any]) -> Kernel:
    plain = Kernel(fn, noinline=bool(options.get("noinline")))
    if _Reading.active or not plain.is_launchable():
        return plain
    from tlx_xdsl.runtime.triton_kernel import TritonKernel

    try:
        return TritonKernel(fn, **options)
    except (AttributeError, OSError, TypeError, ValueError) as error:
        # Triton reads the text in a way of its own, and fails over some that we do not. Ours tells where what is wrong
        # when the kernel is compiled.
        plain.refused = f"{type(error).__name__}: {error}"
        return plain
