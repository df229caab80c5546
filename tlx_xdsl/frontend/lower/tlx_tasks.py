"""Lowering of the functions of `tlx` for use inside tasks; the tasks themselves are `frontend/tasks.py`."""

from __future__ import annotations

from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.values import Constexpr, Value


@lowers("tlx.async_task_replica_id")
def _async_task_replica_id(call: Call) -> Value:
    if not call.visitor.replica_ids:
        call.fail(None, "there is no replica outside of a task")
    return Constexpr(call.visitor.replica_ids[-1])


@lowers("tlx.async_tasks")
@lowers("tlx.async_task")
def _only_in_a_with(call: Call) -> Value:
    call.fail(None, f"stands in a `with` statement: `with {call.name}(...):`")
