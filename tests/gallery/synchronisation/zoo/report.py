"""Print the table of the mutation zoo: `python -m tests.gallery.synchronisation.zoo.report [KERNEL ...]`."""

from __future__ import annotations

import argparse
import time
from collections import Counter

from tests.gallery.synchronisation.zoo.judging import Row, rows
from tests.gallery.synchronisation.zoo.kernels import ALIASED, CASES, FRONTEND, TTGIR
from tests.gallery.synchronisation.zoo.running import ISSUE, PTX
from tlx_xdsl.interpreter.faults import location_of


def line(row: Row) -> str:
    """A mutant's line of the table."""
    where = location_of(row.site.op).rpartition("/")[2]
    why = row.outcome.line if row.outcome.is_reported else row.benign.argument if row.benign else ""
    policy = row.outcome.policy if row.outcome.is_reported else "all"
    return (
        f"| {row.case} | {where} | `{row.site.op.name}` | {row.site.mutation.name} | {row.found} | {policy} | {why} |"
    )


def main() -> None:
    """Run the zoo, and print what became of every mutant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(case.name for case in CASES)}")
    parser.add_argument("--tensor-core-order", default=PTX, choices=[PTX, ISSUE])
    parser.add_argument("--stage", default=FRONTEND, choices=[FRONTEND, ALIASED, TTGIR])
    arguments = parser.parse_args()
    print("| kernel | line | operation | mutation | found as | schedule | report, or why it is benign |")
    print("|---|---|---|---|---|---|---|")
    found: Counter[str] = Counter()
    named: Counter[str] = Counter()
    began = time.perf_counter()
    for case in CASES:
        if arguments.kernels and case.name not in arguments.kernels:
            continue
        for row in rows(case, case.module(arguments.stage), case.make(), order=arguments.tensor_core_order):
            print(line(row), flush=True)
            found[row.found] += 1
            if row.outcome.is_reported:
                named[row.named] += 1
    print(f"\n{found.total()} mutants in {time.perf_counter() - began:.0f} s: ", end="")
    print(", ".join(f"{count} {kind}" for kind, count in found.most_common()))
    print("Reports name: " + ", ".join(f"{kind or 'NOTHING'} {count}" for kind, count in named.most_common()))


if __name__ == "__main__":
    main()
