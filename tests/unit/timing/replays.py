"""A replay of a trace without time: what must hold of every trace."""

from collections import Counter
from typing import Any

from tlx_xdsl.timing.trace import Trace


def events_of(trace: Trace, *kinds: str) -> list[Any]:
    """The events of these kinds, of all warps."""
    return [
        event for warp in trace.warps for step in warp.steps for event in step.events
        if not kinds or event.kind in kinds
    ]  # fmt: skip


def check(trace: Trace, program: Any) -> None:
    """Check that each point counts the events that name it, that events lie in their blocks, and that replays end."""
    counted = Counter(point for event in events_of(trace) if event.kind != "wait" for point in event.points)
    assert [counted[number] for number in range(len(trace.points))] == [each.contributions for each in trace.points]
    for warp in trace.warps:
        for step in warp.steps:
            block = program.blocks[step.block]
            places = [event.at for event in step.events]
            assert places == sorted(places), "the events of a step are in the order of its instructions"
            assert all(block.first <= at < block.last for at in places)
        for before, step in zip(warp.steps, warp.steps[1:], strict=False):
            assert step.block in program.blocks[before.block].successors or warp.cta < 0
    for order in (1, -1):
        replay(trace, order)


def replay(trace: Trace, order: int = 1) -> None:
    """Run warps one after the other, each as far as its waits let it; all must come to their end."""
    left = [each.contributions for each in trace.points]
    ways = [[event for step in warp.steps for event in step.events] for warp in trace.warps]
    at = [0] * len(ways)
    moved = True
    while moved:
        moved = False
        for number in range(len(ways))[::order]:
            while at[number] < len(ways[number]):
                event = ways[number][at[number]]
                if event.kind == "wait" and any(left[point] for point in event.points):
                    break
                for point in event.points if event.kind != "wait" else ():
                    left[point] -= 1
                at[number] += 1
                moved = True
    assert at == [len(way) for way in ways], "some warp waits for a point that is never met"
