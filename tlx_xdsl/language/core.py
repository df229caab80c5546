"""Foundation of the language: types, `constexpr`, the classes of values, and the markers of its functions.

As in Triton, every primitive of the language is a name of this module too (`tl.core.load`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .compile_time import *
from .compile_time import (
    CONSTEXPR_FUNCTION_MARK as CONSTEXPR_FUNCTION_MARK,
    constexpr_function as constexpr_function,
    unwrapped as unwrapped,
)
from .composite_types import *
from .dtypes import *
from .dtypes import ALL_DTYPES as ALL_DTYPES, base_type as base_type, get_int_dtype as get_int_dtype
from .marks import (
    AGGREGATE_MARK as AGGREGATE_MARK,
    BUILTIN_NAME as BUILTIN_NAME,
    LIBRARY_MARK as LIBRARY_MARK,
    MEMBERS as MEMBERS,
    MUST_USE_MARK as MUST_USE_MARK,
    SPELLINGS as SPELLINGS,
    _aggregate as _aggregate,  # pyright: ignore[reportPrivateUsage]
    aggregate as aggregate,
    builtin as builtin,
    builtin_name as builtin_name,
    hosted as hosted,
    library as library,
)
from .objects import *
from .objects import tensor_descriptor_base as tensor_descriptor_base

if TYPE_CHECKING:
    from .arguments import Flag, Int, Text, Value
    from .compile_time import constexpr
    from .compile_time_types import constexpr as Constant  # pyright: ignore[reportMissingModuleSource]
    from .objects import tensor

__all__ = ["aggregate_replace", "condition", "num_programs", "program_id", "range", "static_range", "to_tensor"]

_tl = builtin("tl")


@constexpr_function
def _unwrap_if_constexpr(value: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
    """Return the value of a constant, as Triton's function of this name: inductor's kernels call it."""
    return value


OTHERS: dict[str, Any] = {}
"""The names of the language that other modules define, filled by the package: none of them is imported here."""


def __getattr__(name: str) -> Any:
    """The rest of the language."""
    if name not in OTHERS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return OTHERS[name]


@_tl
def range(
    arg1: Value,
    arg2: Value | None = None,
    step: Value | None = None,
    num_stages: Int | None = None,
    loop_unroll_factor: Int | None = None,
    disallow_acc_multi_buffer: Flag = False,
    flatten: Flag = False,
    warp_specialize: Flag = False,
    disable_licm: Flag = False,
    *,
    multi_cta: Flag = False,
    data_partition_factor: Int | None = None,
    list_schedule_pick: Any = None,
    mem_plan_pick: Any = None,
    merge_epilogue: Flag = False,
    merge_epilogue_to_computation: Flag = False,
    merge_correction: Flag = False,
    separate_epilogue_store: Flag = False,
    tmem_alloc_algo: Any = None,
    smem_alloc_algo: Any = None,
    smem_budget: Any = None,
    smem_circular_reuse: Any = None,
) -> Iterable[tensor]:
    """A loop range as Python's `range`, with hints for the compiler.

    `num_stages` is the depth of the software pipeline, `loop_unroll_factor` how often the body is repeated,
    `disallow_acc_multi_buffer` keeps one buffer for accumulators, `flatten` merges a nest of loops into one,
    `warp_specialize` splits the body among warps, `disable_licm` keeps invariant code inside.

    `multi_cta` is Meta's: the loop is the work of all CTAs of the cluster together, which run it on the same data. A
    loop that stores is divided among them, one that adds up is repeated by each, so that each has the whole sum.
    The hints after it, of Meta's automatic warp specialization, change no result and nothing here.
    """
    ...


@_tl
def static_range(arg1: Int, arg2: Int | None = None, step: Int | None = None) -> Iterable[Constant]:
    """A range of compile-time integers: the loop is unrolled by the frontend."""
    ...


@_tl
def condition(arg1: Value, disable_licm: Flag = False) -> bool:
    """The condition of a `while`; `disable_licm` keeps invariant code inside of the loop."""
    ...


@_tl
def program_id(axis: Int) -> tensor:
    """The index of this program along `axis` (0, 1 or 2) of the grid, an int32."""
    ...


@_tl
def num_programs(axis: Int) -> tensor:
    """The size of the grid along `axis` (0, 1 or 2), an int32."""
    ...


@_tl
def to_tensor(x: Value) -> tensor:
    """`x` as a runtime value: a compile-time number becomes a constant."""
    ...


@_tl
def extern_elementwise(
    lib_name: Text,
    lib_path: Text,
    args: Sequence[Value],
    arg_type_symbol_dict: dict[Any, Any] | constexpr,
    is_pure: Flag,
) -> tensor:
    """Call a function of a bitcode library on scalars, or on each element of blocks.

    `arg_type_symbol_dict` gives, for each tuple of argument types, the symbol and the type of its result; arguments
    are promoted to a common type and shape first. `is_pure` says that the call has no side effect.
    """
    ...


def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """Another instance of an aggregate's class, with `changes` in the place of some of its fields.

    Raises TypeError for what is no aggregate, and for a name that is no field.
    """
    cls: Any = instance.__class__
    fields: Any = getattr(cls, AGGREGATE_MARK, None) or getattr(cls, "__aggregate_fields__", None)
    if fields is None:
        raise TypeError(f"aggregate_replace() expects an aggregate instance, got {cls.__name__}")
    for name in changes:
        if name not in fields:
            raise TypeError(f"{cls.__name__} has no field '{name}', its fields are {', '.join(fields)}")
    return cls(**{name: getattr(instance, name) for name in fields} | changes)
