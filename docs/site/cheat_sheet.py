"""The page docs/cheat-sheet.md: every function of `tlx` in a line, with the example of its docstring.

    python -m docs.site.cheat_sheet   writes the page; a test compares it

An example is the last part of a docstring: `Example:` and code between backticks, or a fence below it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import tlx_xdsl.language.tlx as tlx
from docs.site.docstrings import cell, doc_of
from docs.site.language import TLX_TOPICS, names_by_topic

PAGE = Path(__file__).parents[1] / "cheat-sheet.md"

GIVEN = {
    "x": "a pointer to fp32", "h": "a pointer to fp16", "n": "an int32 argument",
    "a_desc": "a descriptor of blocks of 128 x 64 fp16", "rows": "a descriptor of blocks of 1 x 64 fp16",
    "peers": "a symmetric tensor of fp32", "pad": "a symmetric tensor of int32 counters",
}  # fmt: skip
"""Arguments of the examples' kernels, in words."""

MADE = {
    "at": "tl.arange(0, 128)",
    "block": "tl.zeros((128, 64), tl.float16)",
    "acc": "tl.zeros((128, 128), tl.float32)",
    "pointers": "h + tl.arange(0, 128)[:, None] * 64 + tl.arange(0, 64)",
    "a": "tlx.local_alloc((128, 64), tl.float16, 2)",
    "b": "tlx.local_alloc((64, 128), tl.float16, 2)",
    "gathered": "tlx.local_alloc((32, 64), tl.float16, 1)",
    "full": "tlx.alloc_barriers(2)",
    "region": "tlx.storage_alias_spec(tlx.storage_kind.smem)",
    "one": "tlx.local_alloc((64, 64), tl.float16, 2, reuse=region)",
    "two": "tlx.local_alloc((64, 64), tl.float32, 1, reuse=region)",
    "room": "tlx.allocate_tensor_descriptor(1)",
    "bytes": "tl.zeros((128, 128), tl.float8e4nv)",
    "scales": "tl.full((128, 4), 127, tl.uint8)",
    "eights": "tl.zeros((128, 64), tl.float8e4nv)",
    "total": "tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)",
    "words": "tlx.local_alloc((128, 32), tl.int32, 1)",
    "columns": "tlx.local_alloc((128, 32), tl.int32, 1, tlx.storage_kind.tmem)",
    "a8": "tlx.local_alloc((128, 128), tl.float8e4nv, 1)",
    "b8": "tlx.local_alloc((128, 128), tl.float8e4nv, 1)",
    "a_scale": "tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)",
    "b_scale": "tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)",
    "context": "tlx.clc_create_context(1)",
    "responses": "tlx._alloc_clc_responses(1)",
}
"""Values that examples name, and how they are made."""

_EXAMPLE = re.compile(r"\n\nExample: `(?P<line>.+)`$|\n\nExample:\n```python\n(?P<lines>.+)\n```$", re.DOTALL)


def example_of(name: str) -> str | None:
    """The example of a function or class of `tlx`, as lines of a kernel; None where its docstring has none."""
    match = _EXAMPLE.search(doc_of(getattr(tlx, name)))
    return None if match is None else (match["line"] or match["lines"])


def functions() -> dict[str, list[str]]:
    """The names of the page by topic: all functions, and those classes that have an example."""
    found = names_by_topic(tlx, TLX_TOPICS)
    return {
        topic: [
            each
            for each in names
            if inspect.isfunction(getattr(tlx, each)) or (inspect.isclass(getattr(tlx, each)) and example_of(each))
        ]
        for topic, names in found.items()
    }


def page() -> str:
    """The page, in Markdown."""
    return "\n".join(_lines()) + "\n"


_HEAD = """\
# Cheat sheet: `tlx` on a page

<!-- Made by `python -m docs.site.cheat_sheet` of the docstrings; a test compares them. -->

Every function in a line, with an example that a test compiles and runs. In Python `help(tlx.local_alloc)` says the
rest. The examples stand in a kernel:

```python
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
```

Its arguments are {given}.
Other names are as follows, and buffers hold zeros:
"""


def _lines() -> Iterator[str]:
    yield _HEAD.format(given=",\n".join(f"`{name}` ({what})" for name, what in GIVEN.items()))
    yield "```python"
    yield from (f"{name} = {made}" for name, made in MADE.items())
    yield "```"
    for topic, names in functions().items():
        yield f"\n## {TLX_TOPICS[topic]}\n\n| | does | example |\n|---|---|---|"
        for name in names:
            said = doc_of(getattr(tlx, name)).split("\n\n")[0].replace("\n", " ")
            first = re.split(r"(?<=[.)])\s(?=[A-Z`])", said, maxsplit=1)[0]
            yield f"| `{name}` | {cell(first)} | {_shown(example_of(name) or '')} |"


def _shown(example: str) -> str:
    """Lines of code in a cell of a table."""
    lines = [cell(line) for line in example.splitlines()]
    spaces = [len(line) - len(line.lstrip()) for line in lines]
    return "<br>".join("&nbsp;" * count + f"`{line.strip()}`" for line, count in zip(lines, spaces, strict=True))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
