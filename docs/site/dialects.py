"""The reference of the dialects: operations, attributes and types, from their definitions in xDSL."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.irdl import (
    OptOperandDef,
    OptPropertyDef,
    OptResultDef,
    VarOperandDef,
    VarResultDef,
)

from docs.site.constraints import words
from docs.site.docstrings import as_markdown, doc_of, field_docs, table
from tlx_xdsl.dialects.registry import our_dialects
from tlx_xdsl.layouts import encodings

_SUMMARY = {
    "tt": "Triton's own operations, without memory of the multiprocessor.",
    "ttg": "Triton for GPUs: layouts, shared memory, asynchronous copies, tasks.",
    "ttng": "NVIDIA's GPUs: mbarriers, TMA, wgmma, tcgen05, tensor memory.",
    "tlx": "What stock Triton has no operation for; the passes lower all of it.",
    "ttl": "Kernels of Tenstorrent's cores: threads, blocks of tiles, circular buffers ([TTL](../ttl.md)).",
    "ttkernel": "Calls of TT-Metalium's functions, which TTL kernels become.",
    "ttcore": "Tiles, grids of cores and memory spaces of TTL.",
}

_HEAD = """\
# The dialect `{name}`

{summary} Examples are shortened: `...` stands for a type or an attribute. A word in capitals, such as (TYPE), names a
type that must be the same wherever it stands in the operation.
"""


def names() -> list[str]:
    """The dialects that this package defines."""
    return list(our_dialects())


def overview() -> str:
    """The page that lists the dialects, in Markdown."""
    rows = []
    for name, load in our_dialects().items():
        dialect = load()
        operations, attributes = len(list(dialect.operations)), len(list(dialect.attributes))
        rows.append((f"[`{name}`]({name}.md)", _SUMMARY[name], str(operations), str(attributes)))
    return (
        "# Dialects\n\n"
        "These are ours; `arith`, `scf`, `cf`, `math` and `builtin` are MLIR's, and of `gpu`, `llvm`, `nvvm` we take\n"
        "what we need. In memory the IR belongs to no version of Triton: how 3.6 to 3.9 spell it is decided when it\n"
        "is written.\n\n" + table(("dialect", "what", "operations", "attributes and types"), rows)
    )


def page(name: str) -> str:
    """The page of a dialect, in Markdown."""
    return "\n".join(_sections(name))


def _sections(name: str) -> Iterator[str]:
    dialect = our_dialects()[name]()
    yield _HEAD.format(name=name, summary=_SUMMARY[name])
    for module, operations in _by_module(dialect.operations).items():
        yield f"## {_title(module)}\n"
        for op in sorted(operations, key=lambda each: each.name):
            yield from _operation(op)
    attributes = sorted(dialect.attributes, key=lambda each: each.name)
    for title, is_type in (("Types", True), ("Attributes", False)):
        chosen = [each for each in attributes if issubclass(each, TypeAttribute) == is_type]
        if chosen:
            yield f"## {title}\n"
        for each in chosen:
            yield from _attribute(each)


def _by_module(operations: Any) -> dict[Any, list[type[Operation]]]:
    groups: dict[Any, list[type[Operation]]] = {}
    for op in operations:
        groups.setdefault(inspect.getmodule(op), []).append(op)
    return groups


def _title(module: Any) -> str:
    """The first sentence of a module's docstring, up to its colon."""
    return doc_of(module).split("\n\n")[0].replace("\n", " ").partition(". ")[0].partition(": ")[0].removesuffix(".")


def _operation(op: type[Operation]) -> Iterator[str]:
    yield f"### `{op.name}` {{ #{op.name} }}\n"
    yield f"{as_markdown(doc_of(op))}\n"
    definition = op.get_irdl_definition()
    properties = {**definition.properties, **definition.attributes}
    rows = [
        *((f"`{name}`", _how_many(each, "operand"), words(each.constr)) for name, each in definition.operands),
        *(
            (f"`{name}`", _how_many(each, "attribute"), words(each.constr))
            for name, each in properties.items()
            if not name.endswith("SegmentSizes")
        ),
        *((f"`{name}`", _how_many(each, "result"), words(each.constr)) for name, each in definition.results),
        *((f"`{name}`", "region", "") for name, _ in definition.regions),
    ]
    yield table(("name", "kind", "what"), rows)
    needs = getattr(op, "NEEDS", None)
    if needs is not None and needs.features:
        wanted = ", ".join(f"{feature.display_name} ({feature.where})" for feature in needs.features)
        yield f"*Needs {wanted}. In kernels: `{needs.display_name}`.*\n"


def _how_many(definition: object, kind: str) -> str:
    match definition:
        case OptOperandDef() | OptPropertyDef() | OptResultDef():
            return f"{kind}, optional"
        case VarOperandDef() | VarResultDef():
            return f"{kind}s, any number"
        case _:
            return kind


def _attribute(cls: type[Attribute]) -> Iterator[str]:
    sigil = "!" if issubclass(cls, TypeAttribute) else "#"
    yield f"### `{sigil}{cls.name}`\n"
    doc = doc_of(cls)
    # A layout is its dataclass, which says what it means.
    layout = next((each for each in vars(encodings) if doc.endswith(f": see `{each}`.")), None)
    if layout is None:
        yield f"{as_markdown(doc)}\n"
    else:
        yield f"{as_markdown(doc_of(getattr(encodings, layout)))}\n"
        yield _fields(getattr(encodings, layout))


def _fields(cls: type) -> str:
    docs = field_docs(cls)
    rows = [
        (
            f"`{each.name}`",
            f"`{each.type}`",
            "required" if each.default is MISSING and each.default_factory is MISSING else f"`{each.default}`",
            docs.get(each.name, ""),
        )
        for each in fields(cls)
    ]
    return table(("field", "type", "default", "meaning"), rows)
