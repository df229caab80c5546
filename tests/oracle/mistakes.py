"""Random kernels with one mistake each, which must end in an error on the line of the mistake.

`python -m tests.oracle.mistakes NUMBER` shows a program, its mistake and what our frontend says.
"""

import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.oracle import fuzz, loading, ours
from tests.oracle.fuzz import Program
from tlx_xdsl import CompilationError

MISTAKES = {
    "unknown name": "bad = n + undefined_name",
    "misspelt function": "tl.stor(y0, n)",
    "misspelt parameter": "bad = tl.load(x0, maks=n > 0)",
    "missing argument": "tl.store(y0)",
    "too many arguments": "bad = tl.program_id(0, 1)",
    "unknown axis of the grid": "bad = tl.program_id(7)",
    "size that isn't a power of two": "bad = tl.arange(0, 33)",
    "run-time bound of a range": "bad = tl.arange(0, n)",
    "run-time size": "bad = tl.zeros((n,), tl.float32)",
    "run-time axis": "bad = tl.expand_dims(columns, n)",
    "shapes that don't broadcast": "bad = columns + tl.arange(0, 64)",
    "mask of another shape": "bad = tl.load(x0 + columns, mask=tl.arange(0, 64) < 9)",
    "load through a number": "bad = tl.load(n)",
    "store through a number": "tl.store(n, 1)",
    "block into one place": "tl.store(y0, columns)",
    "product of a pointer": "bad = x0 * 2",
    "sum of pointers": "bad = x0 + y0",
    "float as an offset": "bad = x0 + f",
    "shift of a float": "bad = f << 1",
    "bits of a float": "bad = f & 3",
    "integer division of floats": "bad = f // 2.0",
    "signed modulo unsigned": "bad = n % n.to(tl.uint32)",
    "number that doesn't fit": "bad = n.to(tl.int8) + 1000",
    "bit cast to another size": "bad = columns.to(tl.int64, bitcast=True)",
    "cast to a number": "bad = n.to(3)",
    "cast of a rounding that isn't there": "bad = f.to(tl.float16, fp_downcast_rounding='up')",
    "type that isn't one": "bad = tl.zeros((32,), 5)",
    "shape of another size": "bad = tl.reshape(columns, (5,))",
    "unpacking too many": "bad, worse = (n, f, m)",
    "unpacking a scalar": "bad, worse = n",
    "index of a scalar": "bad = n[0]",
    "index of a block": "bad = columns[3]",
    "index beyond a tuple": "bad = (n, f)[2]",
    "unknown attribute": "bad = n.color",
    "call of a number": "bad = n(3)",
    "call of a module": "bad = tl(3)",
    "Python's open": "bad = open('file')",
    "set comprehension": "bad = {a for a in (1, 2)}",
    "lambda": "bad = lambda a: a",
    "dictionary": "bad = {'a': n}",
    "with": "with open('file'):\n    pass",
    "try": "try:\n    pass\nfinally:\n    pass",
    "import": "import os",
    "global": "global GLOBAL",
    "delete": "del n",
    "nested class": "class Bad:\n    pass",
    "global that is no constexpr": "bad = n + GLOBAL",
    "failed static_assert": "tl.static_assert(K > 100, 'K is small')",
    "static_assert of a run-time value": "tl.static_assert(n > 0)",
    "cache modifier that isn't there": "bad = tl.load(x0, cache_modifier='.zz')",
    "eviction policy that isn't there": "bad = tl.load(x0, eviction_policy='soon')",
    "branch on a block": "if columns > 3:\n    tl.store(y0, n)",
    "loop on a block": "while columns > 3:\n    tl.store(y0, n)",
    "loop over a block": "for bad in columns:\n    tl.store(y0, n)",
    "loop over a number": "for bad in n:\n    tl.store(y0, n)",
    "break": "for bad in range(n):\n    break",
    "continue": "for bad in range(n):\n    continue",
    "float as the bound of a loop": "for bad in range(f):\n    tl.store(y0, n)",
    "run-time bound of a static range": "for bad in tl.static_range(n):\n    tl.store(y0, n)",
    "matrix product of rows": "bad = tl.dot(columns, columns)",
    "small matrix product": "bad = tl.dot(index.to(tl.float16), columns.to(tl.float16))",
    "where with a pointer": "bad = tl.where(n > 0, x0, 1.5)",
    "missing argument of a function": "bad = _scaled(n)",
    "too many arguments of a function": "bad = _scaled(n, 2, 3)",
    "misspelt parameter of a function": "bad = _scaled(n, bi=3)",
    "recursion": "bad = _endless(n)",
    "mistake in a function": "bad = _wrong(n)",
    "atomic on a number": "bad = tl.atomic_add(n, 1)",
    "memory order that isn't there": "tl.atomic_add(x0, 1, sem='later')",
    "reduction over an axis that isn't there": "bad = tl.sum(columns, axis=3)",
    "transposition of one dimension": "bad = tl.trans(columns, (0, 0))",
    "join of different shapes": "bad = tl.join(columns, tl.arange(0, 64))",
    "split of a row": "bad, worse = tl.split(columns)",
    "complement of a float": "bad = ~f",
    "use before a definition": "bad = n + not_yet\nnot_yet = n",
    "name of one branch only": "if n > 3:\n    only_here = n\nbad = n + only_here",
    "type that changes in a loop": "other = n\nfor bad in range(n):\n    other = other * 1.5",
    "shape that changes in a loop": "other = n\nfor bad in range(n):\n    other = columns",
    "shape that differs between branches": "if n > 3:\n    other = columns\nelse:\n    other = index\nbad = other",
}
"""Mistake -> the statement that makes it. In statements of several lines the error may stand on each of them."""

_FUNCTIONS = """\
@triton.jit
def _scaled(a, by):
    return a * by


@triton.jit
def _endless(a):
    return _endless(a - 1)


@triton.jit
def _wrong(a):
    b = a + 1
    return b + nowhere


"""
_INSIDE = {"recursion": "return _endless(a - 1)", "mistake in a function": "return b + nowhere"}
"""Mistakes that are made in a function, and the line there."""


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake, and the lines of its file on which the error may stand."""

    what: str
    program: Program
    text: str
    lines: range


def mistake(number: int) -> Mistake:
    """Return the program of a number with one mistake; the first numbers go through all of `MISTAKES`."""
    pick = random.Random(number)
    names = list(MISTAKES)
    what = names[number] if number < len(names) else pick.choice(names)
    program = fuzz.program(1000 + number)
    lines = program.lines
    # After the first two lines, which define `columns` and `index`, before a statement at any depth but `else`.
    places = [at for at in range(2, len(lines)) if not lines[at].lstrip().startswith("el") and at not in _pruned(lines)]
    if what.startswith(("name of one", "type that", "shape that", "global")) or "break" in what:
        places = [at for at in places if not lines[at].startswith(" ")]
    at = pick.choice(places)
    indentation = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    statement = [indentation + line for line in MISTAKES[what].splitlines()]
    program.lines[at:at] = statement
    text = fuzz.HEADER + _FUNCTIONS + program.text
    written = text.splitlines()
    if what in _INSIDE:
        first = next(i for i, line in enumerate(written) if line.strip() == _INSIDE[what])
        return Mistake(what, program, text, range(first + 1, first + 2))
    start = len(written) - len(program.lines) + at + 1
    return Mistake(what, program, text, range(start, start + len(statement)))


def _pruned(lines: list[str]) -> set[int]:
    """Return the lines in branches of compile-time conditions: what is there may not be looked at."""
    found: set[int] = set()
    inside: str | None = None
    for at, line in enumerate(lines):
        indentation = line[: len(line) - len(line.lstrip())]
        if inside is not None and len(indentation) <= len(inside) and not line.startswith(f"{inside}else"):
            inside = None
        if inside is None and line.lstrip().startswith("if K "):
            inside = indentation
        elif inside is not None:
            found.add(at)
    return found


def judge(made: Mistake, path: Path) -> str | None:
    """Return what is wrong with how our frontend takes a mistake; None if it says where it is."""
    path.write_text(made.text, encoding="utf-8")
    case = loading.load(path, ours=True)[made.program.name]
    try:
        ours.build(case)
    except CompilationError as error:
        if error.location is None:
            return f"the error has no place: {error}"
        if error.location.line not in made.lines:
            return f"the error is not on line {made.lines.start}: {error}"
        if "\n" in error.message:
            return f"the message has more than one line: {error}"
        return None
    return "no error"


def main() -> None:
    made = mistake(int(sys.argv[1]))
    with tempfile.TemporaryDirectory() as directory:
        found = judge(made, Path(directory) / "mistake.py")
    print(made.text)
    print(f"{made.what}, lines {made.lines}: {found or 'is refused as it should be'}")


if __name__ == "__main__":
    main()
