"""The storage map as text, as JSON and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, get_args

from tlx_xdsl.analysis.buffer_users import Uses
from tlx_xdsl.analysis.lives import Life
from tlx_xdsl.analysis.storage_budget import certain, excesses
from tlx_xdsl.analysis.storage_map import NAMES, UNITS, Array, Memory, Region, Span, StorageMap
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.runtime.show.storage_map_svg import map_as_svg
from tlx_xdsl.targets import target_of

from ..documents import document
from ..output import table


def rendered(maps: Sequence[StorageMap], format_: str, width: int) -> str:
    """The maps of a module in a format of `tlx map`; pictures are so many pixels wide.

    Raises CompilationError for a picture of several.
    """
    if format_ == "json":
        fits = not any(excess.is_certain for each in maps for excess in excesses(each))
        return document("tlx map", {"maps": [map_as_json(each) for each in maps]}, ok=fits)
    if format_ == "text":
        return "\n\n".join(map(map_as_text, maps))
    if len(maps) > 1:
        names = ", ".join(each.kernel for each in maps)
        raise CompilationError(f"--format svg: a picture shows one function, this module has {names}")
    return map_as_svg(maps[0], width)


def map_as_text(map_: StorageMap) -> str:
    """The map for people: per memory a line for every buffer, then the lines of Python that use each array."""
    where = "" if map_.place is None else f" ({_short(map_.place)})"
    lines = [f"{map_.kernel}{where} for {target_of(map_.capability).name}"]
    for memory in get_args(Memory):
        if map_.of(memory):
            lines += ["", *_memory(map_, memory)]
    lines += _alive(map_)
    if any(region.memory == "smem" for region in map_.regions):
        lines += ["", "not counted: what stock Triton adds (captures of tasks, scratch memory)"]
    return "\n".join(lines)


def _memory(map_: StorageMap, memory: Memory) -> list[str]:
    used, limit, unit = map_.used(memory), map_.limit(memory), UNITS[memory]
    rest = f"{limit - used:,} free" if used <= limit else f"{used - limit:,} too many"
    lines = [f"{NAMES[memory]}: {used:,} of {limit:,} {unit}, {rest}"]
    for region in map_.of(memory):
        if not _is_barriers(region):
            lines += ["", _heading(region, unit), *table(_buffer_rows(region))]
    if rows := _barrier_rows(map_.of(memory)):
        lines += ["", f"  barriers, places in all of {NAMES[memory]}", *table(rows)]
    lines += ["", "  used by", *table(_use_rows(map_.of(memory)))]
    return lines


def _heading(region: Region, unit: str) -> str:
    facts = [f"{region.size:,} {unit} from {region.start:,}", f"aligned to {region.alignment:,}"]
    if region.groups > 1:
        facts.append(f"{region.groups} groups of buffers, {region.stride:,} apart")
    if padding := sum(gap.size for gap in region.padding):
        facts.append(f"{padding:,} unused")
    where = "" if region.place is None else f" ({_short(region.place)})"
    return f"  {region.name}{where}: {', '.join(facts)}"


def _buffer_rows(region: Region) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("start", "end", "size", "buffer", "type", "shares memory with")]
    for array in region.arrays:
        spans: Iterable[tuple[str, Span]] = (
            (f"{array.name}[{index}]", span) for index, span in enumerate(array.buffers)
        )
        if array.role == "view":
            spans = [(array.name, array.buffers[0])]
        for name, span in spans:
            sharers = ", ".join(_indexed(other, indices) for other, indices in region.sharers(array, span))
            rows.append((f"{span.start:,}", f"{span.end:,}", f"{span.size:,}", name, array.type, sharers or "-"))
    rows += [(f"{gap.start:,}", f"{gap.end:,}", f"{gap.size:,}", "(unused)", "", "") for gap in region.padding]
    return rows


def _is_barriers(region: Region) -> bool:
    return not region.is_shared and region.arrays[0].role == "barriers"


def _barrier_rows(regions: Sequence[Region]) -> list[tuple[str, ...]]:
    """A line for every array of barriers, not for each barrier."""
    rows: list[tuple[str, ...]] = [("start", "end", "size", "barriers")]
    for region in regions:
        if _is_barriers(region):
            end, array = region.start + region.size, region.arrays[0]
            name = _indexed(array, range(len(array.buffers)))
            rows.append((f"{region.start:,}", f"{end:,}", f"{region.size:,}", name))
    return rows if len(rows) > 1 else []


def _indexed(array: Array, indices: Sequence[int]) -> str:
    """`a[0..5]` for several indices in a row, `a[0,2]` for others."""
    if array.role == "view":
        return array.name
    if len(indices) > 2 and indices[-1] - indices[0] == len(indices) - 1:
        return f"{array.name}[{indices[0]}..{indices[-1]}]"
    return f"{array.name}[{','.join(map(str, indices))}]"


def _use_rows(regions: Sequence[Region]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("array", "task", "lines")]
    for region in regions:
        for array in region.arrays:
            rows += [
                (array.name if number == 0 else "", uses.task, _lines(uses)) for number, uses in enumerate(array.uses)
            ] or [(array.name, "none", "")]
    return rows


def _alive(map_: StorageMap) -> list[str]:
    """A table for each task: its buffers downward, the lines at which it uses some to the right."""
    arrays = [array for region in map_.regions for array in region.arrays]
    lines: list[str] = []
    for task, moments in map_.moments.items():
        rows = [(array.name, life) for array in arrays for life in array.lives if life.task == task]
        files = dict.fromkeys(PurePath(place.filename).name for place in moments)
        heads = [f"{place.line}" if len(files) == 1 else _short(place) for place in moments]
        width = max(map(len, heads)) + 1
        side = max(len(name) for name, _ in rows) + 2
        lines += ["", f"alive in {task}, by line of {', '.join(files)}"]
        lines.append(("    " + " " * side + "".join(head.ljust(width) for head in heads)).rstrip())
        lines += [f"    {name:{side}}{_bar(life, len(moments), width)}" for name, life in rows]
    if lines:
        lines.append("    # used, = from the first to the last use, ~ in a loop around them")
    return lines


def _bar(life: Life, count: int, width: int) -> str:
    low, high = life.whole
    cells: list[str] = []
    for moment in range(count):
        inside, around = life.first <= moment <= life.last, low <= moment <= high
        fill = "=" if inside and moment < life.last else "~" if around and moment < high else " "
        head = "#" if moment in life.uses else "=" if inside else "~" if around else " "
        cells.append(head * (width - 1) + fill)
    return "".join(cells).rstrip()


def _lines(uses: Uses) -> str:
    return f"{PurePath(uses.file).name}:{','.join(map(str, uses.lines))}" if uses.lines else ""


def _short(place: SourceLocation) -> str:
    return f"{PurePath(place.filename).name}:{place.line}"


# --- JSON -----------------------------------------------------------------------------------------------------------


def map_as_json(map_: StorageMap) -> dict[str, Any]:
    """The map for programs; docs/storage-aliasing.md explains the keys."""
    return {
        "kernel": map_.kernel,
        "place": _place(map_.place),
        "target": target_of(map_.capability).name,
        "tasks": list(map_.tasks),
        "moments": {task: [_place(place) for place in places] for task, places in map_.moments.items()},
        "memories": {memory: _memory_json(map_, memory) for memory in get_args(Memory)},
    }


def _memory_json(map_: StorageMap, memory: Memory) -> dict[str, Any]:
    return {
        "unit": UNITS[memory],
        "used": map_.used(memory),
        "certain": certain(map_, memory),
        "limit": map_.limit(memory),
        "regions": [_region_json(region) for region in map_.of(memory)],
    }


def _region_json(region: Region) -> dict[str, Any]:
    return {
        "name": region.name,
        "place": _place(region.place),
        "start": region.start,
        "size": region.size,
        "alignment": region.alignment,
        "groups": region.groups,
        "stride": region.stride,
        "padding": [[gap.start, gap.end] for gap in region.padding],
        "arrays": [_array_json(region, array) for array in region.arrays],
    }


def _array_json(region: Region, array: Array) -> dict[str, Any]:
    return {
        "name": array.name,
        "role": array.role,
        "type": array.type,
        "place": _place(array.place),
        "buffer_size": array.unit,
        "alignment": array.alignment,
        "group_size": array.group_size,
        "buffers": [
            {
                "index": index,
                "start": span.start,
                "end": span.end,
                "shares_with": [f"{other.name}[{i}]" for other, found in region.sharers(array, span) for i in found],
            }
            for index, span in enumerate(array.buffers)
        ],
        "alive": [
            {
                "task": life.task,
                "from": life.first,
                "to": life.last,
                "uses": list(life.uses),
                "loop": None if life.loop is None else list(life.loop),
            }
            for life in array.lives
        ],
        "uses": [{"task": uses.task, "file": uses.file, "lines": list(uses.lines)} for uses in array.uses],
    }


def _place(place: SourceLocation | None) -> str | None:
    return None if place is None else f"{place.filename}:{place.line}"
