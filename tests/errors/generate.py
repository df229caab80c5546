"""Makes docs/errors.md of the catalogue: `python -m tests.errors.generate`."""

import re
import tempfile
from pathlib import Path

from tests.errors.catalogue import TOPICS
from tests.errors.entry import TYPES, Entry

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"

_INTRODUCTION = """\
# Errors

<!-- Made by `python -m tests.errors.generate` of the kernels in tests/errors; a test compares them. -->

What the compiler says about a wrong kernel, with a real example of each kind: the kernel, the message as it is
printed, why, and what to write instead. Search this page for words of your message. The last chapter is about
kernels that compile, and that go wrong when they run: the [interpreter](interpreter.md) finds that without a GPU.

A message is one line, `file:line:column: error: what is wrong`, with the line of your file below it and a caret under
the place. Columns count characters from 1. A `note:` line for each call leads from a function back to the kernel. The
Python API raises `tlx_xdsl.CompilationError` with the same text. A message that starts with `internal error` is our
mistake, not yours: please report it with the kernel.

The examples leave out the imports, which are always

```python
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
```

Where an example does not say otherwise, its arguments have these types: {types}.
"""


def anchor(title: str) -> str:
    """The name that Markdown gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _entry(entry: Entry, directory: Path) -> str:
    return f"""\
### {entry.title}

```python
{entry.source}```

```{"console" if entry.command else "text"}
{f"$ {entry.command}{chr(10)}" if entry.command else ""}{entry.printed(directory)}
```

{entry.why}
"""


def page() -> str:
    """The text of docs/errors.md."""
    types = ", ".join(f"`{name}` is `{type_}`" for name, type_ in TYPES.items())
    parts = [_INTRODUCTION.format(types=types), "## Contents\n"]
    contents: list[str] = []
    for topic in TOPICS:
        contents.append(f"- [{topic.title}](#{anchor(topic.title)})")
        contents.extend(f"  - [{entry.title}](#{anchor(entry.title)})" for entry in topic.entries)
    parts.append("\n".join(contents) + "\n")
    with tempfile.TemporaryDirectory() as directory:
        for topic in TOPICS:
            parts.append(f"## {topic.title}\n\n{topic.introduction}\n")
            parts.extend(_entry(entry, Path(directory)) for entry in topic.entries)
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
