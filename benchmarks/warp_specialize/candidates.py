"""Candidates for a launch of a plain kernel: stock Triton, what we specialise, and what was written by hand.

A candidate is made of types and constants only, so that it can be compiled where there is no GPU.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, options
from tlx_xdsl.runtime.specialize.candidates import FEW_PROGRAMS

STOCK, STOCK_WS, OURS, RULE, HAND = "Triton", "Triton warp_specialize", "ours", "ours by rule", "by hand"
"""Who has made a kernel. `ours by rule` is the family's own configuration without a decision that is given."""

DECISIONS: tuple[Mapping[str, Any], ...] = (
    {}, {"groups": 2}, {"groups": 1}, {"groups": 2, "persistent": True}, {"groups": 2, "turns": False},
)  # fmt: skip
"""Decisions that ours is tuned over, with each of a family's blocks."""

CLUSTERS: tuple[Mapping[str, Any], ...] = ({"groups": 2, "persistent": True, "cluster": 2},)
"""Those of products, whose tiles share blocks; the screening's times show what they are worth."""
SPLIT: tuple[Mapping[str, Any], ...] = tuple({"groups": 2, "split": parts} for parts in (2, 4, 8))
"""Decisions of products with few tiles, whose loops programs share."""
FEW_TILES: Mapping[str, tuple[Shape, ...]] = {
    "matmul": tuple({"M": m, "N": n, "K": k} for m, n, k in ((512, 512, 16384), (1024, 1024, 8192), (256, 4096, 4096)))
}
"""Launches with few tiles and a long K, beside the large ones of a family."""
JOINED: tuple[Mapping[str, Any], ...] = tuple(
    {"groups": groups, "join": True, "outer_depth": 2, "order": order, **more}
    for groups, order, more in (
        (3, 0, {}), (3, 0, {"turns": False}), (3, 0, {"split_masks": False}), (2, 0, {}), (3, 1, {}), (3, 2, {}),
        (3, 2, {"turns": False}), (2, 1, {}), (2, 2, {}),
    )
)  # fmt: skip
"""Those with blocks of 64 rows, where each consumer has a program of its own."""
LONG: tuple[Mapping[str, Any], ...] = tuple(
    {"groups": 2, "persistent": True, "outer_depth": depth, "order": order, **more}
    for depth, order, more in ((2, 0, {}), (1, 1, {}), (2, 1, {}), (1, 2, {}), (1, 1, {"alias": True}))
)
"""Those of two consumers with the rows of a tile, for programs of many turns."""
DECISIONS_OF: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "state": ({}, {"groups": 2}, {"transpose": False}, {"groups": 2, "depth": 3}),
    "output": ({}, {"persistent": False}, {"outer_depth": 1}),
}
"""The same for families that have others: of a chunk two groups share the columns."""

MORE_OF: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "attention": LONG + JOINED, "product": CLUSTERS + SPLIT, "gated": CLUSTERS,
}  # fmt: skip
"""What there is beside `DECISIONS`."""

BLOCKS: Mapping[str, tuple[Config, ...]] = {
    "product": (
        {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        {"BLOCK_M": 256, "BLOCK_N": 128, "BLOCK_K": 64},
    ),
    "gated": ({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, {"BLOCK_M": 256, "BLOCK_N": 64, "BLOCK_K": 64}),
    "fp8": ({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 128}, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128}),
    "fp8 blocks": ({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128},),
    "attention": (
        {"BLOCK_M": 128, "BLOCK_N": 128}, {"BLOCK_M": 128, "BLOCK_N": 64},
        {"BLOCK_M": 64, "BLOCK_N": 128, "num_warps": 4},
    ),
    "state": ({"BLOCK_V": 64}, {"BLOCK_V": 128}, {"BLOCK_V": 32}),
    "output": ({"BLOCK_K": 64, "BLOCK_V": 128}, {"BLOCK_K": 128, "BLOCK_V": 128}, {"BLOCK_K": 64, "BLOCK_V": 64}),
}  # fmt: skip
KINDS: Mapping[str, str] = {
    "gated": "gated", "matmul_fp8": "fp8", "matmul_fp8_blocks": "fp8 blocks", "attention": "attention",
    "attention_two_loops": "attention", "attention_window": "attention", "delta_state": "state",
    "delta_output": "output",
}  # fmt: skip
"""The blocks that ours is tuned over, for families that are no plain product."""


@dataclass(frozen=True)
class Candidate:
    """A kernel for the types and constants of a launch; `label` is its name among those of a launch."""

    label: str
    who: str
    family: Family
    shape: Shape
    config: Config
    decisions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def constexprs(self) -> dict[str, Any]:
        """Return the values of compile-time arguments."""
        return self.family.constexprs(self.shape, self.config)

    @property
    def options(self) -> dict[str, Any]:
        """Return warps and stages."""
        return options({**self.family.config, **self.config})

    def problem(self, arrays: Arrays) -> Problem:
        """The launch of the plain kernel."""
        return self.family.problem(self.shape, arrays, self.config)


def stock(family: Family, shape: Shape) -> Iterator[Candidate]:
    """All configurations that stock Triton is tuned over."""
    for config in (family.config, *family.configs):
        if family.fits(shape, config):
            yield Candidate(_label(config), STOCK, family, shape, config)


def stock_warp_specialized(family: Family, shape: Shape) -> Iterator[Candidate]:
    """Yield some of stock's candidates, with `tl.range(..., warp_specialize=True)`: most do not compile for Hopper."""
    fitting = [each for each in family.configs if family.fits(shape, each)]
    for config in (family.config, *fitting[:: max(1, len(fitting) // 4)]):
        yield Candidate(f"{_label(config)} ws", STOCK_WS, family, shape, config)


def by_rule(family: Family, shape: Shape) -> Candidate:
    """The family's configuration, with what the compiler decides."""
    return Candidate("rule", RULE, family, shape, family.config)


def ours(family: Family, shape: Shape) -> Iterator[Candidate]:
    """The family's configuration by the rules, and some blocks with some decisions."""
    yield by_rule(family, shape)
    kind = KINDS.get(family.name, "product")
    for blocks in BLOCKS[kind]:
        config = {**family.config, **blocks}
        rows = config.get("BLOCK_M", config.get("CHUNK", 64))
        if not family.fits(shape, config):
            continue
        for decisions in DECISIONS_OF.get(kind, DECISIONS + MORE_OF.get(kind, ())):
            groups = decisions.get("groups", 1)
            shared = max(rows, config.get("BLOCK_V", 0))
            if groups > 1 and (shared < (128 if kind != "state" else 64)) != bool(decisions.get("join")):
                continue
            if (decisions.get("order") and not shape.get("causal")) or (groups > 2 and shape.get("dim", 0) > 64):
                continue
            if "split" in decisions and not _has_few_tiles(shape, config):
                continue
            name = " ".join(f"{key}={value}" for key, value in decisions.items())
            yield Candidate(f"{_label(blocks)} {name or 'rule'}", OURS, family, shape, config, decisions)


def launches(family: Family) -> tuple[Shape, ...]:
    """The launches of the benchmark."""
    return (*family.large, *FEW_TILES.get(family.name, ()))


def _has_few_tiles(shape: Shape, config: Config) -> bool:
    """True where loops are worth to be split: larger blocks leave few slots beside their sums."""
    rows, columns = config["BLOCK_M"], config["BLOCK_N"]
    tiles = -(-shape["M"] // rows) * -(-shape["N"] // columns) if "N" in shape else FEW_PROGRAMS + 1
    return tiles <= FEW_PROGRAMS and rows * columns <= 128 * 128


def _label(config: Config) -> str:
    return " ".join(f"{name.removeprefix('BLOCK_')}{value}" for name, value in config.items())


# --- stock's kernels, with and without its own specialisation --------------------------------------------------------

_LOOP = re.compile(r"^(\s*for \w+ in )(?:tl\.)?range\((.*)\):$")


@cache
def warp_specialized_file(family: Family, folder: Path) -> Path:
    """The family's file, over stock Triton, whose innermost loops ask stock to specialise them."""
    from tests.gallery.plain.over_stock import text_over_stock

    lines = text_over_stock(family).splitlines()
    for at, line in enumerate(lines):
        found = _LOOP.match(line)
        if found is None:
            continue
        indent = len(line) - len(line.lstrip())
        body = []
        for later in lines[at + 1 :]:
            if later.strip() and len(later) - len(later.lstrip()) <= indent:
                break
            body.append(later)
        if not any(_LOOP.match(each) for each in body):
            lines[at] = f"{found[1]}tl.range({found[2]}, warp_specialize=True):"
    text = "\n".join(lines) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"stock_ws_{family.name}_{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
    path.write_text(text, encoding="utf-8")
    return path


def stock_kernel(family: Family, folder: Path, *, warp_specialize: bool) -> Any:
    """The family's kernel as stock Triton has it."""
    from tests.gallery.plain.over_stock import loaded, over_stock

    if not warp_specialize:
        return over_stock(family).kernel
    return loaded(warp_specialized_file(family, folder), family).kernel


# --- by hand ----------------------------------------------------------------------------------------------------------


def by_hand(family: Family, shape: Shape, arrays: Arrays) -> tuple[Any, dict[str, Any], dict[str, Any]] | None:
    """The launch of our kernel of the same work, its arrays, and the outputs by the names of the family's.

    None where there is no such kernel.
    """
    problem = family.problem(shape, arrays)
    x = problem.arrays
    match family.name:
        case "matmul" | "matmul_descriptors" | "matmul_persistent":
            from tlx_xdsl.kernels.gemm.dense import gemm_launch

            return gemm_launch(x["a"], x["b"], x["c"]), x, {"c": x["c"]}
        case "gated":
            from tlx_xdsl.kernels.gemm.dense import gemm_launch

            weights = arrays.joined(x["w"], x["u"])
            return gemm_launch(x["x"], weights, x["out"], epilogue="swiglu"), {**x, "wu": weights}, {"out": x["out"]}
        case "attention" if not shape.get("by_rows"):
            from tlx_xdsl.kernels.attention.forward import attention_launch

            lse = arrays.poisoned(shape["batch"], shape["heads"], shape["length"], dtype="fp32")
            return attention_launch(x["q"], x["k"], x["v"], x["o"], lse, causal=shape["causal"]), x, {"o": x["o"]}
        case "attention_two_loops" if not shape.get("by_rows"):
            from tlx_xdsl.kernels.attention.forward import attention_launch

            made = attention_launch(x["q"], x["k"], x["v"], x["o"], x["lse"], causal=shape["causal"])
            return made, x, {"o": x["o"]}
        case "matmul_grouped":
            from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch

            ends = arrays.integers([sum(shape["rows"][: at + 1]) for at in range(len(shape["rows"]))])
            return grouped_gemm_launch(x["a"], x["b"], ends, x["c"]), {**x, "ends": ends}, {"c": x["c"]}
        case _:
            return None


def smaller(candidate: Candidate) -> Candidate:
    """The candidate for a small shape of its family, for dry runs."""
    return replace(candidate, shape=candidate.family.shapes[0])
