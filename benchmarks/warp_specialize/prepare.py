"""Compile all candidates of the benchmark, and of `right.py`, where no GPU is needed.

    python benchmarks/warp_specialize/prepare.py --out DIR [--families matmul,attention] [--processes 2] [--only ours]

What is in DIR and fits is kept, so that a second call is short. `--pack FILE` writes what launches need into one
archive, which `speed.py` and `right.py` take as `--prepared FILE`. Triton must be the version that is to be measured.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tarfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common
from benchmarks.warp_specialize import candidates, compiled
from benchmarks.warp_specialize.arrays import UntouchedArrays
from benchmarks.warp_specialize.candidates import HAND, OURS, STOCK, STOCK_WS
from benchmarks.warp_specialize.compiled import Job
from tests.gallery.plain.families import FAMILIES

PARTS = ("right", STOCK, STOCK_WS, OURS, HAND)


def jobs(names: list[str], parts: list[str]) -> Iterator[Job]:
    """Yield each compile job once."""
    seen: set[str] = set()
    for job in _jobs(names, parts):
        if job.key not in seen:
            seen.add(job.key)
            yield job


def _jobs(names: list[str], parts: list[str]) -> Iterator[Job]:
    common.on_large_gpu()
    for name in names:
        family = FAMILIES[name]
        for shape in family.shapes if "right" in parts else ():
            each = candidates.by_rule(family, shape)
            yield compiled.job_of(each, each.problem(UntouchedArrays()))
        makers = {STOCK: candidates.stock, STOCK_WS: candidates.stock_warp_specialized, OURS: candidates.ours}
        for shape in candidates.launches(family):
            for part, maker in makers.items():
                for each in maker(family, shape) if part in parts else ():
                    yield compiled.job_of(each, each.problem(UntouchedArrays()))
            if HAND in parts and (made := candidates.by_hand(family, shape, UntouchedArrays())) is not None:
                for at, launch in enumerate(common.each_launch(made[0])):
                    yield compiled.job_by_hand(launch, f"{name}: by hand {at}")


def _share(names: list[str], parts: list[str], share: int, shares: int, folder: Path) -> Iterator[tuple[str, str, str]]:
    warnings.simplefilter("ignore")
    package = compiled.package_fingerprint()
    for at, job in enumerate(jobs(names, parts)):
        if at % shares == share:
            yield job.who, job.name, compiled.compile_job(job, folder, package)


def _listed(names: list[str], parts: list[str], share: int, shares: int, folder: Path) -> list[tuple[str, str, str]]:
    return list(_share(names, parts, share, shares, folder))


def pack(folder: Path, to: Path, wanted: list[Job]) -> int:
    """Write the binaries of some jobs into one archive; returns how many."""
    count = 0
    with tarfile.open(to, "w") as archive:  # the files are packed already
        for job in wanted:
            path = compiled.path_of(folder, job)
            if path.exists():
                archive.add(path, path.name)
                count += 1
    return count


def unpacked(prepared: Path) -> Path:
    """The folder of binaries: that of an archive, or the folder itself."""
    if prepared.is_dir():
        return prepared
    folder = Path("/tmp") / f"{prepared.stem}-{prepared.stat().st_mtime_ns}"
    if not folder.exists():
        with tarfile.open(prepared) as archive:
            archive.extractall(folder, filter="data")
    return folder


def main() -> int:
    """Compile, and say what could not be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--pack", type=Path, metavar="FILE")
    parser.add_argument("--ptxas", help="the assembler of what is ours and by hand: a path, a release or 'stock'")
    parser.add_argument("--list", action="store_true", help="say how many there are, and compile nothing")
    args = parser.parse_args()
    names, parts = args.families.split(","), args.only.split(",")
    if args.list:
        print(*(f"{count:5} {who}" for who, count in Counter(job.who for job in jobs(names, parts)).items()), sep="\n")
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    compiled.ASSEMBLER["ptxas"] = args.ptxas
    began = time.monotonic()
    failed: list[tuple[str, str, str]] = []
    count = 0
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
        shares = args.processes * 8 if args.processes > 1 else 1
        waiting = [pool.submit(_listed, names, parts, at, shares, args.out) for at in range(shares)]
        for each in as_completed(waiting):
            found = each.result()
            count += len(found)
            failed += [one for one in found if one[2]]
    print(f"{count} candidates, {len(failed)} failed, {time.monotonic() - began:.0f} s")
    for who, name, error in failed:
        print(f"  {who}: {name}: {error.splitlines()[0][:200]}")
    if args.pack is not None:
        packed = pack(args.out, args.pack, list(jobs(names, parts)))
        print(f"{packed} files, {args.pack.stat().st_size / 2**20:.1f} MiB in {args.pack}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
