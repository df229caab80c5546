"""The launch options of a kernel that stock Triton does not have, and what runs it."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast, get_args

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
