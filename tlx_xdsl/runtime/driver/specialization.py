"""Specialization of a kernel: its types, constants and options, with those that stock Triton does not have.

No compiler is loaded for it: keys of caches and command lines come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from tlx_xdsl.backend import assemblers
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.python.source import Signature

from ..launch.cuda_driver import cuda_major

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
    ptxas: str | None = None
    """The assembler: a path, a release such as `13.4`, or `stock`; None for the newest that the driver allows."""
    allow_old_ptxas: bool = False
    """Whether an assembler may be taken that is known to miscompile the kernel's products."""

    def backend_options(self, **more: Any) -> BackendOptions:
        """The options to compile its TTGIR with; `more` are options that it does not have."""
        from tlx_xdsl.backend import BackendOptions

        return BackendOptions(
            self.target, self.num_warps, self.num_ctas, self.maxnreg, self.enable_fp_fusion,
            ptxas=self.ptxas, newest_cuda=cuda_major(), allow_old_ptxas=self.allow_old_ptxas, **more,
        )  # fmt: skip

    def assembler_identity(self) -> str:
        """Return what the choice of an assembler depends on here, for the keys of caches."""
        return assemblers.identity(self.ptxas, allow_old=self.allow_old_ptxas, newest_cuda=cuda_major())


Target: TypeAlias = Literal["cpu", "gpu", "interpreter"]
"""What runs a kernel: machine code of the CPU, a GPU through Triton, or the interpreter with all of its checks."""

TARGETS: tuple[Target, ...] = get_args(Target)

CLUSTER_OPTION = "ctas_per_cga"
"""CTAs of a cluster along x, y and z, each with tensors of its own; the grid counts CTAs."""

HINTS = frozenset(
    (
        # Kernels with a cluster are always launched as one, and must not rely on the size that Blackwell may prefer.
        "launch_cluster", "preferred_ctas_per_cga",
        # What Meta's passes for kernels without tlx do by themselves.
        "minRegAutoWS", "maxRegAutoWS", "pingpongAutoWS", "num_buffers_warp_spec", "num_consumer_groups",
        "reg_dec_producer", "reg_inc_consumer", "early_tma_store_lowering", "tma_store_pipelining",
        "generate_subtiled_region", "multicast", "auto_tma", "enable_tree_reduction", "allowDependentTwoCTA",
    )
)  # fmt: skip
"""Options of Meta's Triton, of launches and configurations, that change no result, and are dropped."""

REGISTER_HINTS = frozenset(("minRegAutoWS", "maxRegAutoWS"))
"""Those that are numbers of registers."""

META_OPTIONS = HINTS | {CLUSTER_OPTION}
"""Options that stock Triton refuses."""

LARGEST_CLUSTER = 16
"""CTAs. Source: CUDA C++ Programming Guide, "Thread Block Clusters": 8 everywhere, 16 on H100 and B200."""


def cluster_option(value: object) -> tuple[int, int, int] | None:
    """Return what `ctas_per_cga=` means: CTAs along x, y and z; None for no cluster.

    Raises ValueError for anything but one to three positive whole numbers, and for more CTAs than a cluster can have.
    """
    if value is None:
        return None
    extents = tuple(cast("tuple[object, ...]", value)) if isinstance(value, tuple | list) else (value,)
    numbers = [extent for extent in extents if isinstance(extent, int) and not isinstance(extent, bool) and extent > 0]
    if not 1 <= len(extents) <= 3 or len(numbers) != len(extents):
        raise ValueError(f"{CLUSTER_OPTION}: expected CTAs along x, y and z as in (2, 1, 1), got {value!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    if x * y * z > LARGEST_CLUSTER:
        raise ValueError(f"{CLUSTER_OPTION}: a cluster has at most {LARGEST_CLUSTER} CTAs, got {value!r}")
    return x, y, z
