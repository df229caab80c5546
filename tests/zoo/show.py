"""What the checker says of the zoo: `python -m tests.zoo.show [PART OF A NAME] [--full]`, for who adds to it."""

import sys
import time

from tests.zoo.table import AREAS


def main(wanted: str, is_full: bool) -> None:
    began = time.perf_counter()
    for bug in (each for bugs in AREAS.values() for each in bugs if wanted in each.name):
        report, twin = bug.check(), bug.check_twin()
        named = [finding for finding in report.findings if bug.is_named_by(finding)]
        verdict = "named" if named else "badly named" if report.findings else "missed"
        known = "missed" if bug.missed else "badly named" if bug.badly_named else "named"
        print(f"{'  ' if verdict == known else '! '}{bug.name}: {verdict}, {report.seconds + twin.seconds:.2f} s")
        if is_full or not named:
            for each in report.findings:
                print(each if is_full else f"     {str(each).splitlines()[0]}")
        for each in twin.findings:
            print(f"!    twin: {each if is_full else str(each).splitlines()[0]}")
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    arguments = [each for each in sys.argv[1:] if each != "--full"]
    main(arguments[0] if arguments else "", "--full" in sys.argv)
