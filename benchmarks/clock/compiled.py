"""Compiled configurations on disk: made ahead in parallel processes, read where they are launched."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from benchmarks.clock.problems import Work
from tlx_xdsl.backend import compile_ttgir, installed_triton_version
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.launch.launcher import Launcher, launch_facts
from tlx_xdsl.runtime.launch.parameters import ArgumentSpec


def compile_work(work: Work, stages: Any = "cubin") -> Any:
    """Compile a configuration with the Triton that is installed.

    Raises CompilationError for what can't be compiled.
    """
    launch = work.launch
    wanted = Specialization(
        work.signature, dict(launch.constexprs), "sm_90a", launch.num_warps, cluster=launch.cluster,
        maxnreg=launch.maxnreg, enable_fp_fusion=True,
    )  # fmt: skip
    text = compile_text(
        launch.kernel.source, wanted, triton_version=installed_triton_version(), keep_ttir=False,
        conversion="stock" if work.plain else "auto",
    )  # fmt: skip
    options = wanted.backend_options(num_stages=work.num_stages, mends=not work.plain)
    return compile_ttgir(text.ttgir, options, stages=stages, source_name=f"{text.name}.ttgir", locate=False)


def stored(folder: Path, work: Work) -> dict[str, Any]:
    """Load a configuration from disk, compiled if nothing is there: `error`, or PTX, cubin and what a launch needs."""
    path = folder / f"{work.key}.pickle"
    if not path.exists():
        try:
            result = compile_work(work)
            found = {
                "ptx": result.ptx, "cubin": result.cubin, "metadata": result.metadata, "resources": result.resources,
                "assembler": result.assembler, "triton": result.triton_version,
            }  # fmt: skip
        except Exception as error:  # the others are not lost; the report says it
            found = {"error": f"{type(error).__name__}: {error}"[:400]}
        part = path.with_suffix(f".{id(work)}.part")
        part.write_bytes(pickle.dumps(found))
        part.replace(path)
    return pickle.loads(path.read_bytes())


def launcher(work: Work, found: dict[str, Any]) -> Launcher:
    """Make the launcher of a compiled configuration."""
    signature, launch = work.signature, work.launch
    names = [each.name for each in launch.kernel.source.parameters if each.name in signature]
    return Launcher(
        found["cubin"],
        name=found["metadata"].name,
        arguments=[ArgumentSpec(name, signature[name]) for name in names],
        **launch_facts(found["metadata"], cluster=launch.cluster, launch_pdl=False),
    )


def said(text: str) -> None:
    """Write a line to the log."""
    print(text, file=sys.stderr, flush=True)
