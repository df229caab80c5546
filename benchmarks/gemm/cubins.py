"""Cubins of one Triton in the process of another: bundles made beforehand against kernels that are compiled here.

    python benchmarks/gemm/cubins.py --write DIR                      (where the other Triton is; needs no GPU)
    TLX_CUBINS=DIR python benchmarks/gemm/cubins.py --out DIR         (where the GPU is)

The bundles hold manifests and cubins only. Both are given the same arguments, and take turns.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, program
from benchmarks.gemm.common import OURS, Part
from benchmarks.gemm.shapes import Shape, named

CARRIED = "other cubin"
FOLDER = "TLX_CUBINS"
"""The environment variable that names the folder with the bundles."""

SHAPES = tuple(each for each in named() if each.flops > 1e9)
WANTED = 0.02
"""How far both may lie apart."""


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    for shape in SHAPES:
        yield lambda shape=shape: gemm_launch(*common.untouched_problem(shape))


def bundle_name(launch: Any) -> str:
    """The name of a launch's bundle: the same with every Triton."""
    options = (*map(str, launch.constexprs.items()), launch.num_warps, launch.cluster, launch.maxnreg)
    key = (launch.kernel.source.name, *launch.signature.items(), *options)
    return f"k{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"


def write(folder: Path, makers: Iterable[Callable[[], Any]]) -> int:
    """Compile all kernels with the Triton that is installed here; returns how many."""
    from tlx_xdsl.runtime import write_bundle
    from tlx_xdsl.runtime.bundle.write import LaunchFlags

    common.on_large_gpu()
    done: set[str] = set()
    for make in makers:
        for launch in common.each_launch(make()):
            if (name := bundle_name(launch)) in done:
                continue
            done.add(name)
            path = write_bundle(
                folder,
                launch.kernel,
                launch.signature,
                dict(launch.constexprs),
                name=name,
                num_warps=launch.num_warps,
                cluster=launch.cluster,
                maxnreg=launch.maxnreg,
                flags=LaunchFlags(pdl=launch.launch_pdl),
            )
            for each in path.iterdir():
                # What a launch needs: the rest would only travel.
                if each.suffix not in (".cubin", ".json"):
                    each.unlink()
    return len(done)


def bound_to_bundles(made: Any, folder: Path) -> Callable[[], Any]:
    """A function that runs what a `..._launch` function has made with the cubins in a folder."""
    import torch

    from tlx_xdsl.runtime import load

    stream = torch.cuda.current_stream().cuda_stream
    runs = [
        load(folder, bundle_name(launch)).bind(launch.grid, *launch.values, stream=stream)
        for launch in common.each_launch(made)
    ]

    def run() -> None:
        for each in runs:
            each()

    return runs[0] if len(runs) == 1 else run


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("cubins", "Cubins of another Triton", lambda run: iter(()))
    found.cases = [_case(shape, dry) for shape in SHAPES]
    return found


def _case(shape: Shape, dry: bool) -> Any:
    from benchmarks.gpu.cases import Case
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    case = Case(str(shape), shape.flops, CARRIED, None, lambda: make(), checks_all=True)

    def make():
        a, b, poisoned = common.random_problem(shape, dry=dry)
        outs: dict[str, Any] = {}

        def launch(who: str) -> Callable[[], Any]:
            outs[who] = poisoned()
            made = gemm_launch(a, b, outs[who])
            case.config = common.described(made)
            if dry or who == OURS:
                return common.bound(made)
            return bound_to_bundles(made, Path(os.environ[FOLDER]))

        def verify() -> Any:
            return common.compared(shape, outs, a, b)

        return {who: lambda who=who: launch(who) for who in (CARRIED, OURS)}, verify

    return case


def table(record: Mapping[str, Any]) -> str:
    """The time of what was carried over that of what was compiled."""
    lines = [f"times of the other cubin, as parts of ours; wanted: within {WANTED:.0%}", common.rate_table(record)]
    return "\n".join([*lines, common.notes(record)])


PART = Part("cubins", __file__, family, launches, table, limit_s=60.0)


def main() -> int:
    """Write the bundles, or compare."""
    if "--write" in sys.argv:
        print(f"{write(Path(sys.argv[sys.argv.index('--write') + 1]), launches())} bundles")
        return 0
    return program.main(PART)


if __name__ == "__main__":
    sys.exit(main())
