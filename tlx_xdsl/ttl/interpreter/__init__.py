"""Interpreter of `ttl`: runs the module-level form on whole blocks of tiles, as numpy arrays.

Threads, schedules and the protocol of circular buffers are those of `interpreter.ttkernel`; blocks are values here, and
a circular buffer counts them.
"""

from __future__ import annotations

from .launch import Plan, explore, make_plan, run

__all__ = ["Plan", "explore", "make_plan", "run"]
