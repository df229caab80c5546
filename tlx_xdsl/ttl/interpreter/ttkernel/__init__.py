"""The machine that runs the final form of TTL: cores with circular buffers, DST registers, a NoC, and semaphores.

`run` runs a kernel once, and finds what is wrong with it in that schedule; `explore` runs it in all schedules that make
a difference. `cores` and `machine` have the state; `circular_buffers`, `compute`, `noc` and `semaphores` do what the
operations say; `threads` chooses who goes on.
"""

from __future__ import annotations

from .exploration import Exploration
from .plan import Plan, Report, explore, make_plan, run

__all__ = ["Exploration", "Plan", "Report", "explore", "make_plan", "run"]
