"""Cluster launch control (Blackwell): a running cluster takes over the work of one that has not been launched.

Producer and consumers meet in a context of `num_stages` responses, each with an mbarrier that says it is full and
one that says it is empty. Phases are the parities that `barrier_wait` takes.
"""

from __future__ import annotations

from typing import Literal, overload

from ..arguments import Flag, Int, Value
from ..core import builtin
from ..objects import tensor
from .types import CLCPipelineContext, clc_response, mbarrier

__all__ = ["_alloc_clc_responses", "_clc_issue", "_clc_query", "clc_consumer", "clc_create_context", "clc_producer"]

_tlx = builtin("tlx")
_response = builtin("tlx", spellings={"clc_response_addr": "response"})


@_tlx
def clc_create_context(num_consumers: Int, num_stages: Int = 1) -> CLCPipelineContext:
    """The barriers and responses for `num_consumers` consumers, counted over all CTAs of the cluster.

    Example: `context = tlx.clc_create_context(1)`
    """
    ...


@_tlx
def clc_producer(context: CLCPipelineContext, p_producer: Value, multi_ctas: Flag = True, k: Value = 0) -> None:
    """Wait until stage `k` is empty and ask for the next cluster.

    With `multi_ctas` all CTAs of the cluster call it; the one of rank 0 asks, and all get the response.

    Example: `tlx.clc_producer(context, 1)`
    """


@overload
def clc_consumer(
    context: CLCPipelineContext,
    p_consumer: Value,
    multi_ctas: Flag = True,
    k: Value = 0,
    return_3d: Literal[False] = False,
) -> tensor: ...
@overload
def clc_consumer(
    context: CLCPipelineContext,
    p_consumer: Value,
    multi_ctas: Flag = True,
    k: Value = 0,
    *,
    return_3d: Literal[True],
) -> tuple[tensor, tensor, tensor]: ...
@_tlx
def clc_consumer(
    context: CLCPipelineContext, p_consumer: Value, multi_ctas: Flag = True, k: Value = 0, return_3d: Flag = False
) -> tensor | tuple[tensor, tensor, tensor]:
    """Wait for the response in stage `k`: the x coordinate of the CTA to take over, or -1 when there is no more.

    With `return_3d` it is the three coordinates. With `multi_ctas` x counts from the CTA's own rank.

    Example: `tile = tlx.clc_consumer(context, 0)`
    """
    ...


@_tlx
def _alloc_clc_responses(num_responses: Int) -> clc_response:
    """Allocate responses of 16 bytes.

    Example: `responses = tlx._alloc_clc_responses(1)`
    """
    ...


@_response
def _clc_issue(response: clc_response, barrier: mbarrier) -> None:
    """Ask for the next cluster: the response arrives in `response`, and its 16 bytes complete on `barrier`.

    Example:
    ```python
    tlx.barrier_expect_bytes(full[0], 16)
    tlx._clc_issue(responses[0], full[0])
    ```
    """


@overload
def _clc_query(response: clc_response, return_3d: Literal[False] = False) -> tensor: ...
@overload
def _clc_query(response: clc_response, return_3d: Literal[True]) -> tuple[tensor, tensor, tensor]: ...
@_response
def _clc_query(response: clc_response, return_3d: Flag = False) -> tensor | tuple[tensor, tensor, tensor]:
    """The x coordinate (or all three) of the cluster in a response, or -1 when there is none.

    Example: `tile = tlx._clc_query(responses[0])`
    """
    ...
