"""Kernel x target x Triton version: what compiles, with the figures of ptxas, and why the rest does not.

    make table                                  (all supported versions; writes docs/compile-table.md)
    python benchmarks/compile/table.py [--python OTHER/bin/python ...] [--write FILE]

The kernels are those of `TLX_COMPILE` in examples/*.py and in the files of `MORE`, each for all targets. Every
interpreter named by --python compiles with the Triton of its own environment; without any, this one does.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.backend.client import default_limit
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.targets import TARGETS
from tlx_xdsl.tools.launch_line.loading import load_kernel

MORE = ("tests/unit/targets/portable_kernels.py",)
"""Files with kernels that are no examples: small ones that name no architecture."""
WITH_TORCH = ("torch_operator.py",)
"""Examples that import torch, which the environments of the table lack."""

_LAUNCH = ("num_warps", "num_ctas", "cluster", "maxnreg")

INTRODUCTION = """\
# Which kernel compiles for which GPU

Written by `benchmarks/compile/table.py` (`make table`) on {date}; do not edit.
Each kernel was compiled to a cubin with stock Triton {versions}.

A cell gives registers per thread at the launch, bytes of spill stores and loads per thread, bytes of shared memory, and
columns of tensor memory where there are any. A target without a row refuses the kernel; the reasons stand below.
"""


def kernels() -> list[str]:
    """Return `FILE.py:KERNEL`, relative to the repository, for each kernel of the table."""
    examples = [file for file in sorted((ROOT / "examples").glob("*.py")) if file.name not in WITH_TORCH]
    files = [*examples, *(ROOT / name for name in MORE)]
    return [f"{file.relative_to(ROOT)}:{name}" for file in files for name in _entries(file)]


def _entries(file: Path) -> list[str]:
    """Return the keys of the file's `TLX_COMPILE`, without running it."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="TLX_COMPILE")], value=ast.Dict(keys=keys)):
                return [key.value for key in keys if isinstance(key, ast.Constant)]
    return []


def compile_row(kernel: str, target: str) -> dict[str, object]:
    """Compile a kernel for a target with the installed Triton; return the figures, or the `reason` against it."""
    try:
        loaded, defaults = load_kernel(str(ROOT / kernel))
        launch = {name: defaults.options[name] for name in _LAUNCH if name in defaults.options}
        result = compile_kernel(loaded, Specialization(defaults.signature, defaults.constexprs, target, **launch))
    except CompilationError as error:
        return {"kernel": kernel, "target": target, "reason": error.message}
    return {
        "kernel": kernel,
        "target": target,
        "registers": result.resources.registers,
        "spill_stores": result.resources.spill_store_bytes,
        "spill_loads": result.resources.spill_load_bytes,
        "shared": result.metadata.shared,
        "tmem": result.metadata.tmem_size,
    }


def rows() -> list[dict[str, object]]:
    """Compile every kernel for every target with the installed Triton."""
    with ThreadPoolExecutor(default_limit()) as threads:
        jobs = [threads.submit(compile_row, kernel, target.name) for kernel in kernels() for target in TARGETS]
        return [job.result() for job in jobs]


def rows_of(python: str) -> tuple[str, list[dict[str, object]]]:
    """Run `rows` with another interpreter; return the version of its Triton, and the rows."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, __file__, "--rows"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    return answer["version"], answer["rows"]


def cell(row: dict[str, object]) -> str:
    """One compile in a few words."""
    if "reason" in row:
        return "refused"
    tmem = f", {row['tmem']} col" if row["tmem"] else ""
    return f"ok: {row['registers']} regs, {row['spill_stores']}/{row['spill_loads']}, {row['shared']} B{tmem}"


def table(tables: dict[str, list[dict[str, object]]], date: str) -> str:
    """Write the page: what compiles, then what does not, with the reasons; `tables` has the rows of each version."""
    versions = list(tables)
    cells = {
        (str(row["kernel"]), str(row["target"]), version): row
        for version, all_rows in tables.items()
        for row in all_rows
    }
    pairs = list(dict.fromkeys((kernel, target) for kernel, target, _ in cells))
    lines = [INTRODUCTION.format(date=date, versions=", ".join(versions))]
    lines.append(f"| kernel | targets | {' | '.join(f'Triton {version}' for version in versions)} |")
    lines.append(f"|---|---|{'---|' * len(versions)}")
    compiled: dict[tuple[str, str], list[str]] = {}
    refused: dict[tuple[str, str], dict[str, list[str]]] = {}
    for kernel, target in pairs:
        found = [cells[kernel, target, version] for version in versions]
        if any("reason" not in row for row in found):
            compiled.setdefault((kernel, " | ".join(map(cell, found))), []).append(target)
        for version, row in zip(versions, found, strict=True):
            if "reason" in row:
                where = refused.setdefault((kernel, str(row["reason"]).replace(target, "TARGET")), {})
                where.setdefault(target, []).append(version)
    lines += [f"| `{kernel}` | {', '.join(targets)} | {cells_} |" for (kernel, cells_), targets in compiled.items()]
    lines += ["", "## Refused", "", "| kernel | targets | why |", "|---|---|---|"]
    for (kernel, reason), where in refused.items():
        targets = ", ".join(
            target if len(found) == len(versions) else f"{target} (Triton {', '.join(found)})"
            for target, found in where.items()
        )
        lines.append(f"| `{kernel}` | {targets} | {_in_cell(reason.replace('; target is TARGET', ''))} |")
    return "\n".join(lines) + "\n"


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="interpreter of an environment")
    parser.add_argument("--write", metavar="FILE", help="write the page to a file")
    parser.add_argument("--rows", action="store_true", help="print this environment's rows as JSON")
    args = parser.parse_args()
    if args.rows:
        print(json.dumps({"version": installed_triton_version(), "rows": rows()}))
        return
    page = table(dict(map(rows_of, args.python or [sys.executable])), datetime.date.today().isoformat())
    print(page, end="")
    if args.write:
        Path(args.write).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
