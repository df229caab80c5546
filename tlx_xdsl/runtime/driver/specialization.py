"""What a kernel is compiled for. No compiler is loaded for it: keys of caches and command lines come first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.python.source import Signature

if TYPE_CHECKING:
    from tlx_xdsl.backend import BackendOptions

Conversion: TypeAlias = Literal["auto", "own", "stock"]
"""The passes that give tensors their layouts. `own`: ours, which keep buffers, barriers and tasks as they are written.

`stock`: stock Triton's passes, which also pipeline loops, and which take plain Triton only. `auto`: stock Triton for
plain kernels, we for the others.
"""

CONVERSIONS: tuple[Conversion, ...] = get_args(Conversion)


def pass_list(passes: Iterable[object]) -> tuple[str, ...]:
    """The passes of other packages that a compile has, as `after:NAME=PASS`.

    Raises TypeError for what is no list of texts.
    """
    found: list[str] = []
    for each in (passes,) if isinstance(passes, str) else passes:
        if not isinstance(each, str):
            raise InputTypeError(f"passes: expected texts such as 'after:triton-tlx-fixup=my-pass', found {each!r}")
        found.append(each)
    return tuple(found)


@dataclass(frozen=True)
class Specialization:
    """The types, constants and options that a kernel is compiled for."""

    signature: Mapping[str, Signature]
    """Type of each runtime argument in Triton's spelling."""
    constexprs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Value of each compile-time argument."""
    target: str = "sm_90a"
    num_warps: int = 4
    """Warps of the kernel outside of warp-specialised partitions."""
    num_ctas: int = 1
    cluster: tuple[int, int, int] = (1, 1, 1)
    """CTAs of a cluster along x, y and z, each with tensors of its own (`ctas_per_cga`); the grid counts CTAs."""
    debug: bool = False
    """True if `tl.device_assert` has an effect."""
    maxnreg: int | None = None
    """A bound on the 32-bit registers of a thread."""
    symbol: str | None = None
    """The kernel's name in the binary, which profilers show; that of its function if None."""
    enable_fp_fusion: bool | None = None
    """Whether LLVM and ptxas may contract `a * b + c` to a fused multiply-add; None is Triton's default, which its
    version and the variable `TRITON_DEFAULT_FP_FUSION` say."""
    passes: tuple[str, ...] = ()
    """Passes of other packages beside the compiler's, as `after:NAME=PASS` (`transforms/placed.py`)."""

    def backend_options(self, **more: Any) -> BackendOptions:
        """The options to compile its TTGIR with; `more` are options that it does not have."""
        from tlx_xdsl.backend import BackendOptions

        return BackendOptions(
            self.target, self.num_warps, self.num_ctas, self.maxnreg, self.enable_fp_fusion, **more
        )  # fmt: skip
