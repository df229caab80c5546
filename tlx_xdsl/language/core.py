"""Foundation of the language: types, `constexpr`, the classes of values, and the markers of its functions.

As in Triton, every primitive of the language is a name of this module too (`tl.core.load`).
"""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.compile_time import *
from tlx_xdsl.language.compile_time import (
    CONSTEXPR_FUNCTION_MARK as CONSTEXPR_FUNCTION_MARK,
    constexpr_function as constexpr_function,
    unwrapped as unwrapped,
)
from tlx_xdsl.language.composite_types import *
from tlx_xdsl.language.dtypes import *
from tlx_xdsl.language.dtypes import ALL_DTYPES as ALL_DTYPES, base_type as base_type, get_int_dtype as get_int_dtype
from tlx_xdsl.language.marks import (
    AGGREGATE_MARK as AGGREGATE_MARK,
    BUILTIN_NAME as BUILTIN_NAME,
    LIBRARY_MARK as LIBRARY_MARK,
    MEMBERS as MEMBERS,
    MUST_USE_MARK as MUST_USE_MARK,
    _aggregate as _aggregate,  # pyright: ignore[reportPrivateUsage]
    aggregate as aggregate,
    aggregate_replace as aggregate_replace,
    builtin as builtin,
    builtin_name as builtin_name,
    hosted as hosted,
    library as library,
)
from tlx_xdsl.language.objects import *
from tlx_xdsl.language.objects import tensor_descriptor_base as tensor_descriptor_base

__all__ = ["aggregate_replace", "condition", "num_programs", "program_id", "range", "static_range", "to_tensor"]

_tl = builtin("tl")


OTHERS: dict[str, Any] = {}
"""The names of the language that other modules define, filled by the package: none of them is imported here."""


def __getattr__(name: str) -> Any:
    """The rest of the language."""
    if name not in OTHERS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return OTHERS[name]


@_tl
def range(
    arg1: Any,
    arg2: Any = None,
    step: Any = None,
    num_stages: Any = None,
    loop_unroll_factor: Any = None,
    disallow_acc_multi_buffer: Any = False,
    flatten: Any = False,
    warp_specialize: Any = False,
    disable_licm: Any = False,
    *,
    multi_cta: Any = False,
    data_partition_factor: Any = None,
    list_schedule_pick: Any = None,
    mem_plan_pick: Any = None,
    merge_epilogue: Any = False,
    merge_epilogue_to_computation: Any = False,
    merge_correction: Any = False,
    separate_epilogue_store: Any = False,
    tmem_alloc_algo: Any = None,
    smem_alloc_algo: Any = None,
    smem_budget: Any = None,
    smem_circular_reuse: Any = None,
) -> Any:
    """A loop range as Python's `range`, with hints for the compiler.

    `num_stages` is the depth of the software pipeline, `loop_unroll_factor` how often the body is repeated,
    `disallow_acc_multi_buffer` keeps one buffer for accumulators, `flatten` merges a nest of loops into one,
    `warp_specialize` splits the body among warps, `disable_licm` keeps invariant code inside.

    `multi_cta` is Meta's: the loop is the work of all CTAs of the cluster together, which run it on the same data. A
    loop that stores is divided among them, one that adds up is repeated by each, so that each has the whole sum.
    The hints after it, of Meta's automatic warp specialization, change no result and nothing here.
    """


@_tl
def static_range(arg1: Any, arg2: Any = None, step: Any = None) -> Any:
    """A range of compile-time integers: the loop is unrolled by the frontend."""


@_tl
def condition(arg1: Any, disable_licm: Any = False) -> Any:
    """The condition of a `while`; `disable_licm` keeps invariant code inside of the loop."""


@_tl
def program_id(axis: Any) -> Any:
    """The index of this program along `axis` (0, 1 or 2) of the grid, an int32."""


@_tl
def num_programs(axis: Any) -> Any:
    """The size of the grid along `axis` (0, 1 or 2), an int32."""


@_tl
def to_tensor(x: Any) -> Any:
    """`x` as a runtime value: a compile-time number becomes a constant."""


@_tl
def extern_elementwise(lib_name: Any, lib_path: Any, args: Any, arg_type_symbol_dict: Any, is_pure: Any) -> Any:
    """Call a function of a bitcode library on scalars, or on each element of blocks.

    `arg_type_symbol_dict` gives, for each tuple of argument types, the symbol and the type of its result; arguments
    are promoted to a common type and shape first. `is_pure` says that the call has no side effect.
    """
