"""All small launches of the plain kernels on a Hopper GPU, specialised: right to the reference, nothing written beside.

    python benchmarks/warp_specialize/prepare.py --out DIR --only right --pack FILE        (before; needs no GPU)
    python benchmarks/warp_specialize/right.py --prepared FILE [--families attention] [--repeat 3]
    python benchmarks/warp_specialize/right.py --dry --families matmul                     (no GPU)

A launch whose conditions do not hold takes the plain kernel, as the runtime does: the table says how many. A family
that hangs ends its process, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.warp_specialize import candidates, compiled
from benchmarks.warp_specialize.machines import Dry
from benchmarks.warp_specialize.prepare import unpacked
from benchmarks.warp_specialize.speed import named
from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.family import Family, Shape


def launched(family: Family, shape: Shape, folder: Path, repeat: int) -> tuple[str, str]:
    """Launch one shape; returns which kernel ran, `special` or `plain`, and what is wrong."""
    import torch

    from benchmarks.gpu.measure import watchdog_first_launch
    from benchmarks.warp_specialize.arrays import TorchArrays, UntouchedArrays, error_of, expected

    arrays = TorchArrays()
    each = candidates.by_rule(family, shape)
    problem = each.problem(arrays)
    path = compiled.path_of(folder, compiled.job_of(each, each.problem(UntouchedArrays())))
    if not path.exists():
        return "missing", "not prepared"
    found = compiled.read(path)
    if "error" in found:
        return "missing", found["error"].splitlines()[0]
    kind = "plain" if "refused" in found else "special"
    stream = torch.cuda.current_stream().cuda_stream
    launch = compiled.bound(found, problem, each.constexprs, stream, 132)
    if isinstance(launch, str):
        return "unfit", ""
    wanted = expected(problem, double=True)
    for turn in range(repeat):
        for name in problem.outputs:
            problem.arrays[name].fill_(float("nan"))
        if turn == 0:
            watchdog_first_launch(launch, name=f"{family.name} {named(shape)}")
        else:
            launch()
        torch.cuda.synchronize()
        if wrong := error_of(problem, wanted, family.tolerance):
            return kind, wrong
        if arrays.written_beside():
            return kind, "written beside an array"
    return kind, ""


def interpreted(family: Family, shape: Shape) -> tuple[str, str]:
    """The same in the interpreter."""
    machine = Dry(Path(), 1)
    launch, problem = machine.bound(candidates.by_rule(family, shape))
    if isinstance(launch, str):
        return ("plain" if launch.startswith("refused") else "unfit"), ""
    launch()
    return "special", machine.wrong(problem, family)


def run_family(family: Family, folder: Path, *, dry: bool, repeat: int) -> int:
    """Run all shapes, and print a line of counts; returns how many were wrong."""
    kinds: Counter[str] = Counter()
    failed = 0
    for shape in family.shapes[:2] if dry else family.shapes:
        kind, wrong = interpreted(family, shape) if dry else launched(family, shape, folder, repeat)
        kinds[kind] += 1
        if wrong:
            failed += 1
            print(f"  WRONG {family.name} {named(shape)} ({kind}): {wrong}", flush=True)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"{family.name}: {sum(kinds.values()) - failed} of {sum(kinds.values())} right; {counts}", flush=True)
    return failed


def main() -> int:
    """Run each family in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepared", type=Path, help="what prepare.py has packed, or its folder")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--repeat", type=int, default=3, help="launches of each shape")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one family")
    parser.add_argument("--dry", action="store_true", help="no GPU")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.prepared is None and not args.dry:
        parser.error("--prepared: expected what prepare.py has made, or --dry")
    folder = Path() if args.dry else unpacked(args.prepared)
    if args.family:
        return 1 if run_family(FAMILIES[args.family], folder, dry=args.dry, repeat=args.repeat) else 0
    failed: dict[str, Any] = {}
    for name in args.families.split(","):
        command = [sys.executable, __file__, "--family", name, f"--repeat={args.repeat}"]
        command += ["--dry"] if args.dry else [f"--prepared={folder}"]
        try:
            status = subprocess.run(command, timeout=args.limit, check=False).returncode
        except subprocess.TimeoutExpired:
            status = -1
        if status:
            failed[name] = status
    print("all right" if not failed else f"not right: {json.dumps(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
