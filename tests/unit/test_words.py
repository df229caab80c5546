"""Names, messages and documentation use the terms of MLIR, CUDA and PTX (docs/glossary.md): private words stay out.

Docstrings open with a verb or a noun phrase, not with a pronoun, a preposition or a clause.

`python -m tests.unit.test_words` counts what is found, by word; with paths, such as `tests docs/errors.md`, it prints
each occurrence below them.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]

SEARCHED = ("tlx_xdsl", "docs", "examples", "benchmarks", "notebooks", "release", "tests")
SUFFIXES = {".py", ".md", ".mlir", ".c", ".h"}
EXCEPT = {ROOT / "docs" / "glossary.md", Path(__file__)}
"""Where the words are explained and listed."""

# A word ends at an underscore, too: identifiers count.
WORDS = {
    "behind (after)": r"behind",
    "in front of (before)": r"\bin\s+front\s+of\b",
    "tells (releases, signals, reports)": r"(?<![a-z])tells?(?![a-z])(?!\s+(?:\w+\s+)?apart)",
    "learns (acquires, derives)": r"(?<![a-z])learns?(?![a-z])",
    "told (reported)": r"(?<![a-z])(un)?told(?![a-z])",
    "nobody, somebody (uninitialized, unowned, another task)": r"(no|some)body",
    "spoken name (display name)": r"spoken",
    "carriers (values of one class)": r"(?<![a-z])carriers?(?![a-z])",
    "wishes (hints, requirements)": r"(?<![a-z])wish(es|ed)?(?![a-z])",
    "has no word for (has no operation for)": r"\bno\s+words?\s+for\b",
    "house, stairs (package, layering)": r"\bhouses?\b|\bstairs?\b|\bstaircases?\b",
    "room (package)": r"\brooms\b|\b(this|its|each|every|same|a|the) room\b(?! for)|(?<![a-z])room_|_room(?![a-z])",
    "floor (layer)": r"\bfloors\b|\b(ground|lower|upper|same|each|every|next) floor\b",
    "door (entry point)": r"\b(front|the|its|at a) door\b",
}
PATTERNS = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in WORDS.items()}

# A verb or a noun phrase has to follow: pronouns, conjunctions and prepositions refer to a name that a reader of the
# site, of `help()` or of a list of search results does not see.
OPENERS = (
    "What Whether Where How Why Which Who Whom Whose When If It Its They Them Their This That These Those We He There "
    "Here Something Someone Everything Anything Nothing None Of From As By With For In To At On Because Although While "
    "After Before Without Between Beside Within Until Once Since Under Unless Through Over Into Like Such Along Among "
    "Against Across Not Or And But So Also Only Either Neither Else Others"
)
# A docstring begins the file, or follows the colon of a class or function.
CLAUSE = re.compile(
    r'(?:\A|:[ ]*(?:#.*)?\n)\s*r?"""\W*'
    rf"(?P<opening>(?:(?:{OPENERS.replace(' ', '|')})\b|(?:One|Some|All|Both|Each|Any|Two) of\b"
    r"|One(?:[.,]| (?:for|or|where|that|to|by|from|in)\b)|Some(?:[.,]| that\b)).*)"
)


def searched() -> list[Path]:
    """Every text of the project in which the words are looked for."""
    below = (path for folder in SEARCHED for path in sorted((ROOT / folder).rglob("*")))
    return [ROOT / "README.md", *(path for path in below if path.suffix in SUFFIXES and path not in EXCEPT)]


def found(paths: list[Path]) -> Iterator[tuple[str, str]]:
    """Each occurrence: the word, and where."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for word, pattern in PATTERNS.items():
            for match in pattern.finditer(text):
                yield word, f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a read behind the wait", "behind (after)"),
        ("_behind_last", "behind (after)"),
        ("a fence in\nfront of it", "in front of (before)"),
        ("told_once", "told (reported)"),
        ("Untold", "told (reported)"),
        ("the rooms above", "room (package)"),
        ("has no word for it", "has no word for (has no operation for)"),
    ],
)
def test_a_private_word_is_found(text: str, word: str):
    assert PATTERNS[word].search(text)


@pytest.mark.parametrize(
    "text",
    ["math.floor(x)", "there is room for two", "intelligent", "retold_stories", "floor division", "tell them apart"],
)
def test_other_words_are_left_alone(text: str):
    assert [word for word, pattern in PATTERNS.items() if pattern.search(text)] == []


def test_the_words_are_those_of_the_field():
    assert [f"{where}  [{word}]" for word, where in found(searched())] == []


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ('"""How rows are read."""\n', 'How rows are read."""'),
        ('class Host:\n    """What LLVM compiles for."""\n', 'What LLVM compiles for."""'),
        ('def piece(\n    stream: int,\n) -> Piece:  # fmt: skip\n    """That of a stream.\n', "That of a stream."),
        ('    def kind(self) -> str:\n        r"""*Its* kind."""\n', 'Its* kind."""'),
        ('def bytes(self) -> int:\n    """Of an element."""\n', 'Of an element."""'),
        ('def select(a, b):\n    """One of two."""\n', 'One of two."""'),
        ('"""From a kernel to a launcher."""\n', 'From a kernel to a launcher."""'),
    ],
    ids=["module", "class", "function", "method", "preposition", "number", "preposition of a module"],
)
def test_a_docstring_that_opens_with_a_clause_is_found(text: str, opening: str):
    assert [match["opening"] for match in CLAUSE.finditer(text)] == [opening]


@pytest.mark.parametrize(
    "text",
    [
        'class Host:\n    """The CPU that LLVM compiles for."""\n',
        'def items(self):\n    """Itemise the iterations."""\n',
        'class Host:\n    """A CPU."""\n\n    triple: str\n    """What LLVM calls it."""\n',
        'def threads():\n    """One thread for each warp."""\n',
    ],
    ids=["noun phrase", "longer word", "text below a field", "number of things"],
)
def test_other_openings_are_left_alone(text: str):
    assert CLAUSE.search(text) is None


def test_docstrings_open_with_a_verb_or_a_noun_phrase():
    clauses = [
        f"{path.relative_to(ROOT)}: {match['opening']}"
        for path in searched()
        if path.suffix == ".py"
        for match in CLAUSE.finditer(path.read_text(encoding="utf-8"))
    ]
    assert clauses == []


if __name__ == "__main__":
    occurrences = list(found(searched()))
    for word, where in occurrences:
        if where.startswith(tuple(sys.argv[1:])):
            print(f"{where}  [{word}]")
    for word, count in Counter(word for word, _ in occurrences).most_common():
        print(f"{count:5}  {word}")
