"""Report of the checker on the zoo, for who adds to it.

    python -m tests.zoo.show [PART OF FILE/NAME] [--all] [--full]

Shown is what differs from the table, or all; in one line each, or whole reports.
"""

import sys
import time

from tests.zoo.bugs import Bug
from tests.zoo.table import AREAS, CLEAN


def differences(bug: Bug, *, everything: bool, full: bool) -> list[str]:
    """List what is to be said of a mistake and its twin."""
    began = time.perf_counter()
    found, twin = bug.check(), bug.check_twin()
    named = any(map(bug.is_named_by, found))
    verdict = "named" if named else "badly named" if found else "missed"
    known = "missed" if bug.missed else "badly named" if bug.badly_named else "named"
    shown = []
    if everything or verdict != known:
        shown.append(f"{bug.module}/{bug.name}: {verdict}, {time.perf_counter() - began:.2f} s")
        shown += [f"    {each if full else str(each).splitlines()[0]}" for each in found]
    if bool(twin) != bool(bug.false_alarm):
        shown.append(f"{bug.name}: {'a false alarm' if twin else 'no false alarm any more'}")
    if everything or bool(twin) != bool(bug.false_alarm):
        shown += [f"    twin: {each if full else str(each).splitlines()[0]}" for each in twin]
    return shown


def main(wanted: str, **how: bool) -> None:
    began = time.perf_counter()
    for bug in (each for bugs in AREAS.values() for each in bugs if wanted in f"{each.module}/{each.name}"):
        for line in differences(bug, **how):
            print(line)
    for run in (each for each in CLEAN if wanted in f"/{each.name}"):
        found = run.check()
        if bool(found) != bool(run.false_alarm):
            print(f"{run.name}: {'a false alarm' if found else 'no false alarm any more'}")
            for each in found:
                print(f"    {each if how['full'] else str(each).splitlines()[0]}")
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    main(given[0] if given else "", everything="--all" in sys.argv, full="--full" in sys.argv)
