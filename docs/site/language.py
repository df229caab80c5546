"""The reference of the language: every public name of `tl` and `tlx`, by topic, from the docstrings.

A topic is a module below `tlx_xdsl.language`; mkdocstrings renders what it is given, which is listed here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from docs.site.docstrings import as_markdown, cell, doc_of, table
from tlx_xdsl.language.dtypes import dtype
from tlx_xdsl.language.extra import cuda
from tlx_xdsl.language.extra.libdevice_table import FUNCTIONS
from tlx_xdsl.language.tlx import amd

TL_TOPICS = {
    "core": "Programs and loops",
    "creation": "Making blocks",
    "shape": "Shapes",
    "math": "Arithmetic",
    "reduction": "Reductions and scans",
    "matrix": "Products, gathers and inline code",
    "memory": "Global memory",
    "standard": "Sorting, softmax and the like",
    "random": "Random numbers",
    "debug": "Printing and checking",
    "dtypes": "Element types",
    "composite_types": "Pointers and blocks as types",
    "compile_time": "Values known at compile time",
    "objects": "Classes of values",
}
"""Modules below `tlx_xdsl.language`, in the order of the pages."""

TLX_TOPICS = {
    "memory": "Buffers",
    "types": "Buffers, barriers and overlap groups as values",
    "barriers": "Barriers and fences",
    "tasks": "Tasks",
    "copies": "Copies and TMA",
    "mma": "Tensor cores",
    "packed": "Four 8-bit floats at once",
    "layouts": "Layouts",
    "cluster": "Clusters",
    "ranks": "Several GPUs",
    "clc": "Cluster launch control",
    "utility": "Utilities",
}
"""Modules below `tlx_xdsl.language.tlx`, in the order of the pages."""

HOMELESS = {"TRITON_MAX_TENSOR_NUMEL": "composite_types"}
"""Names whose values do not say which module defines them."""


def names_by_topic(language: ModuleType, topics: dict[str, str]) -> dict[str, list[str]]:
    """The public names of a language by topic, but not its modules, which have pages of their own.

    Raises ValueError for a name of no topic.
    """
    found: dict[str, list[str]] = {topic: [] for topic in topics}
    for name in language.__all__:
        value = getattr(language, name)
        if isinstance(value, ModuleType):
            continue
        module = HOMELESS.get(name) or getattr(value, "__module__", "").rpartition(".")[2]
        if module not in found:
            raise ValueError(f"{language.__name__}.{name} belongs to no topic: '{module}'")
        found[module].append(name)
    return found


def methods() -> list[str]:
    """The functions that are methods of blocks, too, and have no name in `tl` themselves."""
    return [name for name in tl.MEMBERS if name not in tl.__all__]


def topic_page(language: ModuleType, topics: dict[str, str], topic: str) -> str:
    """The page of a topic, in Markdown."""
    prefix = language.__name__.rpartition(".")[2].replace("language", "tl")
    names = names_by_topic(language, topics)[topic]
    module = inspect.getmodule(inspect.unwrap(getattr(language, names[-1])))
    home = f"{language.__name__}.{topic}"
    lines = [f"# {topics[topic]} (`{prefix}`)\n"]
    if module is not None and module.__name__ == home:
        lines.append(f"{as_markdown(doc_of(module))}\n")
    if topic == "dtypes":
        lines.append(_dtypes(names))
        names = [name for name in names if not isinstance(getattr(language, name), dtype)]
    lines.extend(_entry(f"{home}.{name}", f"{prefix}.{name}") for name in sorted(names, key=str.lower))
    return "\n".join(lines)


def _entry(path: str, shown: str) -> str:
    """The directive by which mkdocstrings documents an object under the name that kernels use."""
    return f'::: {path}\n    options:\n      heading: "{shown}"\n      toc_label: "{shown}"\n'


def _dtypes(names: list[str]) -> str:
    rows = [
        (f"[](){{ #tlx_xdsl.language.dtypes.{name} }}`tl.{name}`", f"`{value}`", str(value.primitive_bitwidth))
        for name in names
        if isinstance(value := getattr(tl, name), dtype)
    ]
    return table(("name", "in signatures", "bits"), rows)


def more_page() -> str:
    """The page of what lies in modules of the language, and of methods that are nothing else, in Markdown."""
    return "\n".join(_more())


def _more() -> Iterator[str]:
    yield "# Methods, `tl.math`, `tl.target_info`, `tl.extra`\n"
    yield "## Methods of blocks\n"
    shared = ", ".join(f"`x.{name}`" for name in sorted(tl.MEMBERS) if name not in methods())
    yield f"A block is the first argument of these functions and has them as methods: {shared}. Methods only:\n"
    yield from (_entry(_home(tl.MEMBERS[name], name), f"x.{name}") for name in sorted(methods()))
    yield "## `tl.math`\n"
    yield "All functions of [Arithmetic](tl-math.md) are names of `tl.math`, too.\n"
    yield "## `tl.target_info`\n"
    yield f"{doc_of(tl.target_info)}\n"
    own = [name for name, value in vars(tl.target_info).items() if _is_function_of(tl.target_info, name, value)]
    yield from (_entry(f"{tl.target_info.__name__}.{name}", f"tl.target_info.{name}") for name in own)
    yield "## `tl.extra.cuda`\n"
    yield f"{doc_of(cuda)}\n"
    functions = [name for name in cuda.__all__ if not isinstance(getattr(cuda, name), ModuleType)]
    yield from (_entry(_home(getattr(cuda, name), name), f"tl.extra.cuda.{name}") for name in functions)
    yield "## `tl.extra.libdevice`\n"
    yield f"{_libdevice()}\n"


def _home(function: Any, name: str) -> str:
    return f"{inspect.unwrap(function).__module__}.{name}"


def _is_function_of(module: ModuleType, name: str, value: Any) -> bool:
    return (
        not name.startswith("_")
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
        and bool(value.__doc__ and name != "builtin")
    )


def _libdevice() -> str:
    rows = []
    for function in sorted(FUNCTIONS.values(), key=lambda each: each.name):
        types = ", ".join(f"({', '.join(each.arguments)}) → {each.result}" for each in function.overloads)
        rows.append((f"[](){{ #libdevice.{function.name} }}`{function.name}`", function.meaning, types))
    return (
        "CUDA's libdevice. Arguments are of exactly these types, and blocks are broadcast. How near the interpreter\n"
        "comes to the GPU's numbers stands in [Numerics of libdevice](../interpreter-libdevice.md).\n\n"
        + table(("function", "meaning", "types"), rows)
    )


def amd_page() -> str:
    """The page of the names that exist for AMD's GPUs only, in Markdown."""
    names = ", ".join(f"`tlx.{name}`" for name in sorted(amd.NAMES))
    families = ", ".join(f"`tlx.{prefix}...`" for prefix in amd.PREFIXES)
    return f"# AMD's names (`tlx`)\n\n{doc_of(amd)}\n\n{names}; and the families {families}.\n"


def overview() -> str:
    """The page that lists all names with their first sentence, in Markdown."""
    return "\n".join(_overview())


def _overview() -> Iterator[str]:
    yield "# All names\n"
    yield "What a kernel may say besides, and what differs from Triton, stands in [The language](../language.md).\n"
    for prefix, language, topics in (("tlx", tlx, TLX_TOPICS), ("tl", tl, TL_TOPICS)):
        yield f"## `{prefix}`\n"
        for topic, names in names_by_topic(language, topics).items():
            yield f"### [{topics[topic]}]({prefix}-{topic}.md) {{ #{prefix}-{topic} }}\n"
            rows = []
            for name in sorted(names, key=str.lower):
                anchor = f"{language.__name__}.{topic}.{name}"
                rows.append((f"[`{prefix}.{name}`][{anchor}]", _summary(getattr(language, name))))
            yield table(("name", "what"), rows)


def _summary(value: Any) -> str:
    """The first sentence of a docstring."""
    if isinstance(value, dtype):
        return f"{value.primitive_bitwidth} bits" if value.primitive_bitwidth else "No value"
    if isinstance(value, int):
        return f"`{value}`"
    first = cell((inspect.getdoc(value) or "").split("\n\n")[0])
    head, separator, _ = first.partition(". ")
    return head + "." if separator else first
