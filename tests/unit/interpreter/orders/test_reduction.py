"""Orders of made-up programs: each that makes a difference is run once, as a search through all of them says."""

import itertools
import random

import pytest

from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.interpreter.touches import READ, UPDATE, Touch, depend

pytestmark = pytest.mark.quick

# covers: tlx check

# pyright: basic


def touch(step):
    kind, places = step
    return [Touch("memory", kind, frozenset(places))]


def run(orders, programs):
    """Run programs, lists of steps, in the next order; gives the steps in their order, or None for one given up.

    A step ("await", n, place) can be made when `place` has had `n` updates, and polls in vain before.
    """
    at = dict.fromkeys(programs, 0)
    made, updates, polling = [], {}, {}
    while True:
        enabled = []
        for name, steps in programs.items():
            if at[name] < len(steps):
                step = steps[at[name]]
                if not (step[0] == "await" and polling.get(name) == updates.get(step[2], 0)):
                    enabled.append(name)
        if not enabled:
            break
        enabled.sort(key=lambda name: programs[name][at[name]][0] != "await")
        waiting = frozenset(polling) - frozenset(enabled)
        chosen = orders.choose(enabled, waiting)
        if chosen is None:
            orders.end(whole=False)
            return None
        step = programs[chosen][at[chosen]]
        if step[0] == "await":
            _, wanted, place = step
            if updates.get(place, 0) < wanted:
                polling[chosen] = updates.get(place, 0)
                if not orders.failed([Touch("memory", READ, frozenset((place,)))], 0):
                    orders.end(whole=False)
                    return None
                continue
            polling.pop(chosen, None)
            step = (READ, (place,))
        at[chosen] += 1
        for place in step[1] if step[0] != READ else ():
            updates[place] = updates.get(place, 0) + 1
        orders.made(touch(step), 0)
        made.append((chosen, at[chosen], step))
    orders.end(whole=True)
    assert all(at[name] == len(steps) for name, steps in programs.items())
    return made


def trace(made):
    """Keep the part that no order of free steps changes: for each step those before it that matter."""
    return frozenset(
        (name, number, frozenset(
            each[:2] for each in made[:place]
            if each[0] == name or depend(touch(each[2]), touch(step))
        ))
        for place, (name, number, step) in enumerate(made)
    )  # fmt: skip


def explored(programs):
    orders, found = Orders(), []
    while orders.begin():
        made = run(orders, programs)
        if made is not None:
            found.append(trace(made))
    assert orders.is_over
    assert orders.runs == len(found)
    return orders, found


def every_trace(programs):
    """Collect the traces of all interleavings in which no one polls in vain."""
    names = [name for name, steps in programs.items() for _ in steps]
    found = set()
    for order in set(itertools.permutations(names)):
        at, made, updates = dict.fromkeys(programs, 0), [], {}
        for name in order:
            step = programs[name][at[name]]
            if step[0] == "await":
                if updates.get(step[2], 0) < step[1]:
                    break
                step = (READ, (step[2],))
            at[name] += 1
            for place in step[1] if step[0] != READ else ():
                updates[place] = updates.get(place, 0) + 1
            made.append((name, at[name], step))
        else:
            found.add(trace(made))
    return found


def some(seed):
    """Up to seven steps by two or three agents."""
    chance = random.Random(seed)
    kinds = [READ, UPDATE, "ADD"]
    sizes = chance.choice([(2, 2, 2), (3, 3), (1, 2, 3), (1, 1, 4), (2, 2, 1)])
    return {
        str(name): [
            (chance.choice(kinds), tuple(chance.sample(range(3), chance.choice((1, 1, 2))))) for _ in range(size)
        ]
        for name, size in enumerate(sizes)
    }


@pytest.mark.parametrize("seed", range(60))
def test_each_order_that_makes_a_difference_is_run_once(seed):
    programs = some(seed)
    orders, found = explored(programs)
    assert len(found) == len(set(found))
    assert set(found) == every_trace(programs)
    assert orders.repeats <= len(found)


@pytest.mark.parametrize("seed", range(40))
def test_with_waits_for_what_others_do(seed):
    """The last agent waits for updates of the others: that it has polled in vain before makes no difference."""
    programs = some(seed)
    count = sum(kind != READ and 0 in places for steps in programs.values() for kind, places in steps)
    programs["last"] = [("await", random.Random(seed).randint(0, count), 0), (UPDATE, (1,))]
    _, found = explored(programs)
    assert len(found) == len(set(found))
    assert set(found) == every_trace(programs)


def test_agents_that_touch_different_things_have_one_order():
    orders, found = explored({str(name): [(UPDATE, (name,))] * 3 for name in range(4)})
    assert len(found) == 1
    assert orders.repeats == 0


@pytest.mark.parametrize(("count", "expected"), [(2, 2), (3, 6), (4, 24)])
def test_updates_of_one_place(count, expected):
    orders, _ = explored({str(name): [(UPDATE, (0,))] for name in range(count)})
    assert (orders.runs, orders.repeats) == (expected, 0)


def test_additions_whose_old_values_are_not_asked_for_commute():
    orders, _ = explored({str(name): [("ADD", (0,))] * 2 for name in range(4)})
    assert orders.runs == 1


def test_a_text_runs_an_order_again():
    programs = {str(name): [(UPDATE, (0,))] for name in range(3)}
    orders = Orders()
    for _ in range(4):
        assert orders.begin()
        made = run(orders, programs)
    again = Orders(orders.text)
    assert again.begin()
    assert run(again, programs) == made
    with pytest.raises(ValueError, match="order: expected STEP:WHO with commas between them, found 'first'"):
        Orders("first")
