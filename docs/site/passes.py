"""The reference of the passes: of each the docstring of its module, with before and after, and its options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from types import ModuleType

from xdsl.passes import ModulePass

from docs.site.docstrings import as_markdown, doc_of, field_docs, module_of, table, without_own_name
from tlx_xdsl.runtime.driver.compilation import passes_for
from tlx_xdsl.transforms.registry import OVERRIDES, all_passes, current_name

GROUPS = {
    "storage_alias": "Storage aliasing",
    "layout": "Layouts",
    "tritongpu": "To TTGIR",
    "nvidia": "NVIDIA",
    "ttl": "TTL",
    "": "Everywhere",
}
"""The packages below `tlx_xdsl.transforms`, in the order of the page, and what their passes are about."""

_HEAD = """\
# Passes

Every pass by its name on the command line: `tlx-opt FILE -p NAME{option=value}`, or `--NAME="option=value"`
([tlx-opt](../tlx-opt.md)). What the compiler runs, and in which order, stands in
[Architecture](../architecture.md); `tlx explain` shows what each of them did to a kernel.
"""


def passes_by_group() -> dict[str, dict[str, type[ModulePass]]]:
    """The classes of all passes of ours by package and name; other names of the same pass are left out."""
    groups: dict[str, dict[str, type[ModulePass]]] = {group: {} for group in GROUPS}
    for name, load in {**all_passes(), **OVERRIDES}.items():
        if current_name(name) == name:
            cls = load()
            package = cls.__module__.split(".")[2]
            groups[package if package in groups else ""][name] = cls
    return groups


def aliases() -> dict[str, list[str]]:
    """The older names of passes, by the name of the pass."""
    found: dict[str, list[str]] = {}
    for name in all_passes():
        if (now := current_name(name)) != name:
            found.setdefault(now, []).append(name)
    return found


def page() -> str:
    """The page, in Markdown."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    yield _HEAD
    older = aliases()
    order = [each.name for each in passes_for(plain=False)]
    for group, title in GROUPS.items():
        yield f"## {title}\n"
        for name, cls in sorted(passes_by_group()[group].items()):
            yield f"### `{name}` {{ #{name} }}\n"
            yield f"**{doc_of(cls).splitlines()[0]}**\n"
            yield f"{as_markdown(without_own_name(module_of(cls), name))}\n"
            yield from _topics(cls)
            if options := _options(cls):
                yield options
            yield _footer(name, cls, order, older.get(name, []))


def _topics(cls: type[ModulePass]) -> Iterator[str]:
    """The modules whose patterns a pass applies."""
    for topic in vars(inspect.getmodule(cls)).values():
        if isinstance(topic, ModuleType) and topic.__name__.startswith("tlx_xdsl.transforms."):
            yield f"**`{topic.__name__.rpartition('.')[2]}`**\n\n{as_markdown(doc_of(topic))}\n"


def _options(cls: type[ModulePass]) -> str:
    docs = field_docs(cls)
    rows = [
        (f"`{field.name}`", f"`{field.type}`", f"`{_default(field)}`", docs.get(field.name, ""))
        for field in dataclasses.fields(cls)
        if field.name != "name"
    ]
    return table(("option", "type", "default", "meaning"), rows)


def _default(field: dataclasses.Field[object]) -> object:
    return "required" if field.default is dataclasses.MISSING else field.default


def _footer(name: str, cls: type[ModulePass], order: list[str], older: list[str]) -> str:
    places = [str(place) for place, each in enumerate(order, start=1) if each == name]
    step = (
        f"Step {' and '.join(places)} of {len(order)} of a TLX kernel." if places else "Not a step of every TLX kernel."
    )
    names = f" Also known as {', '.join(f'`{each}`' for each in older)}." if older else ""
    return f"*{step}{names} Source: `{cls.__module__.replace('.', '/')}.py`.*\n"
