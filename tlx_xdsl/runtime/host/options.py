"""Options of a launch, which stand beside its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tlx_xdsl.errors import InputError

from ..driver.specialization import CLUSTER_OPTION, HINTS, TARGETS, Target

IGNORED = HINTS | {
    CLUSTER_OPTION,
    # Triton's of launches on GPUs of NVIDIA and AMD, which say how fast a kernel is, not what it computes.
    "num_warps", "num_stages", "num_ctas", "maxnreg", "stream", "warmup", "ir_override", "arch", "backend_name",
    "enable_fp_fusion", "enable_reflect_ftz", "launch_cooperative_grid", "launch_pdl", "cluster_dims", "clc",
    "warp_size", "ptx_version", "ptx_options", "extern_libs", "sanitize_overflow", "supported_fp8_dtypes",
    "instrumentation_mode", "default_dot_input_precision", "allowed_dot_input_precisions",
    "max_num_imprecise_acc_default", "deprecated_fp8_dot_operand_dtypes", "enable_warp_specialization", "schedule_hint",
    "sched4reg", "min_shared_mem", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "allow_flush_denorm",
    "instruction_sched_variant", "wgp_cu_mode", "llvm_fn_attrs", "fpsan_homomorphic_casts",
}  # fmt: skip
"""Options of a launch that the CPU takes and does not look at."""


@dataclass(frozen=True)
class CpuOptions:
    """Options of a compile and a run of a kernel on the CPU."""

    checks: bool = False
    """Every access is checked to lie in its array: a fault at its line, where else the process may end."""
    debug: bool = False
    """`tl.device_assert` has an effect."""
    debugger: bool = False
    """The debugger opens where a program fails or prints; accesses and assertions are checked."""
    breakpoints: bool = True
    """The debugger opens at `breakpoint()`; no option of a launch."""


def cpu_options(given: Mapping[str, Any], defaults: CpuOptions, name: str, parameters: Iterable[str]) -> CpuOptions:
    """The options of a launch of the kernel `name`; `given` are the names that are no parameter of it.

    Raises KeyError for an unknown name, as Triton does.
    """
    checks, debug, debugger = defaults.checks, defaults.debug, defaults.debugger
    for option, value in given.items():
        if option == "checks":
            checks = bool(value)
        elif option == "debug":
            debug = debug or bool(value)
        elif option == "debugger":
            debugger = bool(value)
        elif option == "target":
            checked_target(value)
        elif option not in IGNORED:
            known = ", ".join(parameters)
            raise KeyError(
                f"Keyword argument {option} was specified but unrecognised: {name} has the parameters {known}"
            )
    made = replace(defaults, checks=checks or debugger, debug=debug, debugger=debugger)
    return defaults if made == defaults else made


def checked_target(value: Any) -> Target | None:
    """The target that an option names.

    Raises ValueError for another one.
    """
    if value is not None and value not in TARGETS:
        raise InputError(f"unknown target {value!r}, expected one of {', '.join(TARGETS)}")
    return value


def interpreter_arguments(given: Mapping[str, Any], parameters: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of a launch for the interpreter, and the options that change what it does."""
    kept = {"num_warps", "num_ctas"}
    options = {name for name, value in given.items() if name in kept and value is not None}
    named = {name: value for name, value in given.items() if name in (*parameters, *options)}
    if given.get(CLUSTER_OPTION) is not None and CLUSTER_OPTION not in named:
        named["cluster"] = tuple(given[CLUSTER_OPTION])
    return named
