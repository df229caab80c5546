"""What the checker says of the zoo: `python -m tests.zoo.show [PART OF FILE/NAME] [--all] [--full]`, for who adds to it.

Shown is what differs from the table, or all; in one line each, or whole reports.
"""

import sys
import time

from tests.zoo.bugs import Bug
from tests.zoo.table import AREAS


def differences(bug: Bug, *, everything: bool, full: bool) -> list[str]:
    """What is to be said of a mistake and its twin."""
    report, twin = bug.check(), bug.check_twin()
    named = any(map(bug.is_named_by, report.findings))
    verdict = "named" if named else "badly named" if report.findings else "missed"
    known = "missed" if bug.missed else "badly named" if bug.badly_named else "named"
    shown = []
    if everything or verdict != known:
        shown.append(f"{bug.module}/{bug.name}: {verdict}, {report.seconds + twin.seconds:.2f} s")
        shown += [f"    {each if full else str(each).splitlines()[0]}" for each in report.findings]
    if everything or bool(twin.findings) != bool(bug.false_alarm):
        shown.append(f"{bug.name}: {'a false alarm' if twin.findings else 'no false alarm any more'}")
        shown += [f"    twin: {each if full else str(each).splitlines()[0]}" for each in twin.findings]
    return shown


def main(wanted: str, **how: bool) -> None:
    began = time.perf_counter()
    for bug in (each for bugs in AREAS.values() for each in bugs if wanted in f"{each.module}/{each.name}"):
        for line in differences(bug, **how):
            print(line)
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    main(given[0] if given else "", everything="--all" in sys.argv, full="--full" in sys.argv)
