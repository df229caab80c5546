"""Size of each package of `tlx_xdsl`, and of the whole, beside a budget for each.

A token is a name, number, string or operator of Python's own tokenizer, so neither line length nor formatting changes
the count; comments, docstrings and blank lines do not count. `make size` prints the table and exits with 1 where
something is above its budget; with `--against REVISION` of git the difference to that revision stands beside it.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNTED = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}

WINGS = ("cpu", "kernels", "ttl")
"""Packages that the compiler does without."""
BESIDE = (
    *("addresses/", "analysis/protocol/", "gate/", "interpreter/orders/", "ptx/", "runtime/check/", "runtime/clock/"),
    *("sass/", "timing/"),
)
"""Parts of the core that are no compiler of TLX: addresses, the checker (prover, orders, runs), the PTX machine, and
what judges final code (the gate, machine code) or predicts its time (the clock)."""
UNGROUPED = ("interpreter",)
"""Folders that may be fuller than others: in sub-folders more imports of these files would lead upwards."""
SMALL = 300
"""Tokens of a file below which it counts as small; each costs a reader a stop, and imports."""

IMPORTS, SMALL_FILES, FULLEST = "imports (% of tokens)", f"files < {SMALL} tokens", "files in a folder"
BUDGETS: dict[str, float] = {
    # Processes that fork, and annotations that Python 3.14 computes late, are the same for all layers.
    "(top)": 8_500,
    "addresses": 39_000,
    "analysis": 74_000,
    "backend": 20_500,
    # Of torch: what a library asks of a GPU that is not there.
    "compat": 12_000,
    # Shifted windows, read without masks but at their edges, and products of bf16 and int8 by AMX.
    "cpu": 139_500,
    "decompile": 24_500,
    "dialects": 69_500,
    "frontend": 76_000,
    "gate": 9_500,
    "interpreter": 105_000,
    "kernels": 132_500,
    "language": 24_500,
    "layouts": 23_500,
    "numerics": 17_500,
    "ptx": 88_500,
    "runtime": 155_000,
    "sass": 25_500,
    "text": 14_000,
    "timing": 57_000,
    "tools": 69_500,
    "torch": 3_000,
    "transforms": 155_000,
    "ttl": 204_500,
    # 1,067,500 before. Of what came then, proofs of aliases, truncation, tensor memory and tails took 5,900; chosen
    # pointers, block pointers and device functions on the CPU 3,500; what runs and launches have in common 3,700; what
    # masks hide, dependent launches and starts of clusters 4,000; records for programs 2,800. Then final code: machine
    # code beside its PTX 25,000; the order of lanes and of global memory in PTX 9,000; the gate 9,000; what versions
    # miscompile 8,500; PTX as the last stage of a check 6,500; the choice of ptxas 2,500. Then TLX as it is now:
    # layouts of registers, votes, rows by TMA, shifts in tensor memory, packed fp8, names of parameters 6,500; text of
    # Meta's compiler and all of stock's 3,500; order between CTAs in PTX 1,200; Python 3.14 and other systems 700.
    # The clock of final code 55,500; its launches, why they are slow, probes and rankings by it 8,500.
    # What calls it makes the decompiler a part of the compiler: 17,500.
    # Plain kernels as tasks: the passes 74,000, search and launches 19,500, their source 6,500, analyses of places
    # 4,000, dimensions that are cut together 2,000. Nothing goes: stock's way stays for what is refused.
    # Several GPUs: their kernels 14,200 (products 6,500, sums 4,000, experts 3,700), the engines 1,600; what they need
    # of the language and of the interpreter 4,000; scopes between GPUs, launches in a row, reports of waits and the
    # command line with ranks 4,500. TTL of today 43,500: formats, dimensions and shards 11,000; functions, printing
    # and names 9,000; pipes of the whole grid and chips 8,000; registers that are spilled, block calls, scripts 7,500;
    # races, repairs and costs 6,000; launches on a card and objects of its network 2,000. Of the small files eight are
    # those of new folders. Tests of the text of headers went, since a compiler reads them.
    # A debugger that goes back, in terminals and editors, 18,500; profiles of machine code by line 2,300; reports as
    # JSON, tools for agents and lint with proofs 5,500; diffs that keep names, and their pages, 6,000; layouts and
    # lifetimes as pictures 8,500; torch.compile on CPUs and a stand-in for a GPU 4,000; quotients and remainders as
    # dimensions, pieces of tiles, rows gathered whole 7,500; CPUs of other systems and upstream's pipeline 2,200.
    # Proofs across ranks 15,500, engines and the PTX machine for several GPUs, limits that end, timelines of ranks
    # 6,500; cross-entropy of a linear layer 8,000; products whose rows travel by columns 1,200; on the CPU operands
    # that are read in place and dot instructions 4,500, regions that choose and scans in parts 4,000; TTL's rows,
    # sums in registers, single tiles 6,500. A generic way for maxima that keep NaN went.
    # Plain kernels whose programs are joined, orders of tiles, loops of uneven length 4,200; work beside products and
    # short programs 2,000; on the CPU scalars before loops, accumulators that begin with a number, gathered rows
    # 2,000; rows that begin anywhere 5,000. Aggregates of kernels took 9,000 away: attention of sequences and of 8
    # bits, both schedules of a product that is scattered, and six loops over K are one kernel each.
    # Plain kernels whose producers copy by threads what TMA can't 2,800, and whose clusters share loads 2,800.
    "total": 1_541_500,
    "core": 1_066_000,
    "compiler": 780_000,
    IMPORTS: 7.5,
    SMALL_FILES: 100,
    FULLEST: 30,
}
"""Tokens of each package, and of sums: the core is all but the wings, the compiler the core but what is beside it.

The commit that needs more raises a budget, and says why.
"""


@dataclass(frozen=True)
class Source:
    """A file of the package, by its path below it; one that is not in Python has no tokens."""

    name: str
    lines: int = 0
    tokens: int = 0
    imports: int = 0
    """Tokens of import statements."""

    @property
    def package(self) -> str:
        """The folder directly below `tlx_xdsl`."""
        return self.name.split("/")[0] if "/" in self.name else "(top)"

    @property
    def is_small(self) -> bool:
        """Return whether the file is a small one; an `__init__.py` may be."""
        return self.name.endswith(".py") and not self.name.endswith("__init__.py") and self.tokens < SMALL


def lines_of(text: str) -> tuple[set[int], set[int]]:
    """Return the lines of strings that stand alone as a statement, docstrings, and those of import statements."""
    docstrings: set[int] = set()
    imports: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docstrings.add(node.lineno)
            case ast.Import() | ast.ImportFrom():
                imports |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            case _:
                pass
    return docstrings, imports


def measured(name: str, text: str) -> Source:
    """Count lines with a counted token, and counted tokens."""
    docstrings, imports = lines_of(text)
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in COUNTED and not (token.type == tokenize.STRING and token.start[0] in docstrings)
    ]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return Source(name, len(lines), len(tokens), sum(token.start[0] in imports for token in tokens))


def sources(revision: str | None) -> Iterator[Source]:
    """Yield each file of the package now or at a revision."""
    if revision is None:
        for path in sorted((ROOT / "tlx_xdsl").rglob("*.*")):
            if path.is_file() and path.parent.name != "__pycache__":
                name = path.relative_to(ROOT / "tlx_xdsl").as_posix()
                yield measured(name, path.read_text(encoding="utf-8")) if path.suffix == ".py" else Source(name)
        return
    for path in git("ls-tree", "-r", "--name-only", revision, "tlx_xdsl").splitlines():
        name = path.removeprefix("tlx_xdsl/")
        yield measured(name, git("show", f"{revision}:{path}")) if path.endswith(".py") else Source(name)


def git(*arguments: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def groups(every: list[Source]) -> dict[str, list[Source]]:
    """Return the Python files of each package, and of each sum."""
    python = [source for source in every if source.name.endswith(".py")]
    core = [source for source in python if source.package not in WINGS]
    return {
        **{name: [each for each in python if each.package == name] for name in sorted({s.package for s in python})},
        "total": python,
        "core": core,
        "compiler": [source for source in core if not source.name.startswith(BESIDE)],
    }


def fullest(every: list[Source]) -> tuple[str, int]:
    """Return the folder with the most files, and their number."""
    folders = Counter(source.name.rpartition("/")[0] for source in every)
    return max(((name, count) for name, count in folders.items() if name not in UNGROUPED), key=lambda pair: pair[1])


def figures(every: list[Source]) -> dict[str, float]:
    """Return what has a budget, by the budget's name."""
    if not every:
        return {}
    found: dict[str, float] = {name: sum(source.tokens for source in files) for name, files in groups(every).items()}
    found[IMPORTS] = round(100 * sum(source.imports for source in every) / found["total"], 2)
    found[SMALL_FILES] = sum(source.is_small for source in every)
    found[FULLEST] = fullest(every)[1]
    return found


def complaints(found: dict[str, float], budgets: dict[str, float]) -> list[str]:
    """Return a line for each figure above its budget, or without one, and for each budget without a figure."""
    lines = [
        f"{name}: {found[name]:,} is {found[name] - budget:,.7g} above its budget of {budget:,};"
        " raise it in the commit that needs it, with a reason"
        for name, budget in budgets.items()
        if found.get(name, 0) > budget
    ]
    lines += [f"{name}: expected a budget in benchmarks/size.py, found none" for name in found.keys() - budgets.keys()]
    lines += [
        f"{name}: expected a package of this name, found only its budget" for name in budgets.keys() - found.keys()
    ]
    return lines


def main() -> int:
    """Print the table, then what is above its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="revision of git to compare with")
    revision = parser.parse_args().against
    every = list(sources(None))
    now, files = figures(every), groups(every)
    before = figures(list(sources(revision))) if revision else {}
    head = f"{'package':<23}{'files':>6}{'lines':>9}{'tokens':>11}{'budget':>11}"
    print(head + (f"{'difference':>13}" if revision else ""))
    for name in dict.fromkeys([*now, *before]):
        group, value = files.get(name, []), now.get(name, 0)
        counts = f"{len(group):>6,}{sum(source.lines for source in group):>9,}" if group else " " * 15
        title = f"{name} (wing)" if name in WINGS else name
        difference = f"{round(value - before.get(name, 0), 2):>+13,}" if revision else ""
        print(f"{title:<23}{counts}{value:>11,}{BUDGETS.get(name, 0):>11,}{difference}")
    print(f"core: all but the wings; compiler: the core without {', '.join(BESIDE)}")
    print(f"fullest folder: {fullest(every)[0]} (not counted: {', '.join(UNGROUPED)})")
    above = complaints(now, BUDGETS)
    print("\n".join(above), file=sys.stderr, end="\n" if above else "")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
