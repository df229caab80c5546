"""Every example of docs/errors.md is refused on its marked line, and the page shows what is printed."""

import re

import pytest

from tests.errors.catalogue import TOPICS
from tests.errors.entry import FILE, Entry
from tests.errors.generate import PAGE, anchor, page

ENTRIES = [entry for topic in TOPICS for entry in topic.entries]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.title)
def test_a_wrong_kernel_is_refused_on_its_line(tmp_path, entry: Entry):
    error = entry.error(tmp_path)
    assert error is not None, "the kernel compiles"
    assert error.location.line == entry.line
    first, source_line, caret, *notes = entry.printed(tmp_path).split("\n")
    assert re.fullmatch(rf"{FILE}:{entry.line}:{error.location.column}: error: .*[^.]", first)
    assert source_line == "    " + entry.source.splitlines()[entry.line - 1]
    assert caret == " " * (3 + error.location.column) + "^"
    assert all(note.startswith("note: ") for note in notes)


def test_titles_are_unique():
    # Markdown makes links of them.
    titles = [anchor(title) for title in (*(entry.title for entry in ENTRIES), *(topic.title for topic in TOPICS))]
    assert len(titles) == len(set(titles))


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.errors.generate"
