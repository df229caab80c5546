"""Binaries of candidates on disk: compiled where there is no GPU, launched where there is one.

A file has what a launch needs (cubin, argument types, facts of the launch, what the host computes) and no more, packed.
Its name is a hash of the candidate: types, constants, decisions. Binaries of ours note the package that made them,
which `speed.py` compares with the one that is there.
"""

from __future__ import annotations

import hashlib
import lzma
import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.warp_specialize import candidates
from benchmarks.warp_specialize.candidates import HAND, OURS, RULE, STOCK, STOCK_WS, Candidate
from tests.gallery.plain.family import Family, Problem
from tlx_xdsl.runtime.driver.host_values import typed

TARGET = "sm_90a"
ASSEMBLER: dict[str, str | None] = {"ptxas": None}
"""The assembler of what is ours and by hand: as `tlx_xdsl` takes it, None for the newest that there is."""
LAUNCH_FACTS = ("num_warps", "shared", "tensordesc_meta", "global_scratch_size", "profile_scratch_size", "cluster")


@dataclass(frozen=True)
class Job:
    """A candidate with the types of its arguments."""

    key: str
    who: str
    name: str
    """The kernel's name and the candidate's label."""
    make: Callable[[Path], dict[str, Any]]
    """Compile, in a folder for files on the way."""


def signature_of(kernel: Any, problem: Problem, constexprs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types of the arguments, and all constants: those of the kernel, and numbers that are 1."""
    found = typed(kernel.source, {**problem.arguments, **constexprs})
    return found.signature, found.constexprs


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def job_of(candidate: Candidate, problem: Problem) -> Job:
    """Make the compile job of a candidate's launch; `problem` has arrays that may be untouched."""
    types, constants = signature_of(candidate.family.kernel, problem, candidate.constexprs)
    options = candidate.options
    who = OURS if candidate.who == RULE else candidate.who
    source = Path(candidate.family.kernel.source.filename).read_text(encoding="utf-8")
    key = _key(
        who, candidate.family.name, hashlib.sha256(source.encode()).hexdigest(), types, sorted(constants.items()),
        sorted(options.items()), sorted(candidate.decisions.items()),
    )  # fmt: skip
    made = {
        STOCK: lambda folder: _stock(candidate.family, types, constants, options, folder, warp_specialize=False),
        STOCK_WS: lambda folder: _stock(candidate.family, types, constants, options, folder, warp_specialize=True),
        OURS: lambda folder: _ours(candidate, types, constants, folder),
    }
    return Job(key, who, f"{candidate.family.name}: {candidate.label}", made[who])


def job_by_hand(launch: Any, name: str) -> Job:
    """Make the compile job of one launch of a kernel that was written by hand."""
    types, constants = dict(launch.signature), dict(launch.constexprs)
    options = {"num_warps": launch.num_warps, "cluster": launch.cluster, "maxnreg": launch.maxnreg}
    key = _key(HAND, launch.kernel.source.name, types, sorted(constants.items()), sorted(options.items()))

    def make(_folder: Path) -> dict[str, Any]:
        from tlx_xdsl.runtime.driver.specialization import Specialization

        wanted = Specialization(types, constants, TARGET, enable_fp_fusion=True, **options)
        found = _binary(launch.kernel.source, wanted)
        found["facts"] = {**found["facts"], "cluster": launch.cluster, "launch_pdl": launch.launch_pdl}
        return found

    return Job(key, HAND, name, make)


# --- compiling --------------------------------------------------------------------------------------------------------


def _stock(
    family: Family, types: Mapping[str, Any], constants: Mapping[str, Any], options: Mapping[str, Any], folder: Path,
    *, warp_specialize: bool,
) -> dict[str, Any]:  # fmt: skip
    """Compile by stock Triton alone."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = candidates.stock_kernel(family, folder, warp_specialize=warp_specialize)
    names = list(kernel.arg_names)
    aligned = [name for name, type_ in types.items() if str(type_).endswith(":16")]
    source = ASTSource(
        kernel,
        {name: str(types[name]).removesuffix(":16") if name in types else "constexpr" for name in names},
        dict(constants),
        {(names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=dict(options))
    facts = {name: getattr(made.metadata, name) for name in LAUNCH_FACTS[:-1] if hasattr(made.metadata, name)}
    return {
        "cubin": made.asm["cubin"], "name": made.metadata.name, "facts": facts,
        "arguments": [(name, str(types[name])) for name in names if name in types],
    }  # fmt: skip


def _ours(candidate: Candidate, types: Mapping[str, Any], constants: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Specialise, and compile what was written; one that is refused has the reason, and is the plain kernel."""
    from tlx_xdsl.runtime.driver.specialization import Specialization
    from tlx_xdsl.runtime.specialize.specialized import warp_specialized
    from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

    decisions = Decisions(**candidate.decisions)
    num_warps = candidate.options["num_warps"]
    found = warp_specialized(candidate.family.kernel, types, constants, decisions, TARGET, num_warps)
    if not found:
        wanted = Specialization(types, constants, TARGET, num_warps, enable_fp_fusion=True)
        made = _binary(candidate.family.kernel.source, wanted, num_stages=candidate.options.get("num_stages", 3))
        return {**made, "refused": found.refused.message if found.refused else ""}
    made = _binary(found.kernel.source, found.specialization, folder=folder)
    report = [str(each) for each in found.decisions]
    return {**made, "host": found.host.as_json(), "source": found.source, "decisions": report}


def _binary(source: Any, wanted: Any, *, num_stages: int = 3, folder: Path | None = None) -> dict[str, Any]:
    """Compile a kernel of ours; the same TTGIR is compiled once, for a folder that keeps what it became."""
    from tlx_xdsl.backend import compile_ttgir, installed_triton_version
    from tlx_xdsl.runtime.driver.compilation import compile_text

    wanted = replace(wanted, ptxas=ASSEMBLER["ptxas"])
    text = compile_text(source, wanted, triton_version=installed_triton_version(), keep_ttir=False)
    options = wanted.backend_options(num_stages=num_stages)
    kept = None if folder is None else folder / "ttgir" / f"{_key(text.ttgir, options, installed_triton_version())}.xz"
    if kept is not None and kept.exists():
        return read(kept)
    made = compile_ttgir(text.ttgir, options, source_name=f"{text.name}.ttgir", locate=False)
    facts = {name: getattr(made.metadata, name) for name in LAUNCH_FACTS[:-1]}
    names = [each.name for each in source.parameters if each.name in wanted.signature]
    found = {
        "cubin": made.cubin, "name": made.metadata.name, "facts": facts,
        "arguments": [(name, str(wanted.signature[name])) for name in names],
        "resources": asdict(made.resources), "warnings": [str(each) for each in made.warnings],
        "assembler": made.assembler,
    }  # fmt: skip
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write(kept, found)
    return found


# --- on disk ----------------------------------------------------------------------------------------------------------


def path_of(folder: Path, job: Job) -> Path:
    """Return the path of a job's binary."""
    return folder / f"{job.key}.xz"


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write a file at once."""
    part = path.with_suffix(f".{id(found)}.part")
    part.write_bytes(lzma.compress(pickle.dumps(dict(found)), preset=6))
    part.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Return what a file has; `error` says why a candidate could not be compiled."""
    return pickle.loads(lzma.decompress(path.read_bytes()))


def compile_job(job: Job, folder: Path, package: str) -> str:
    """Compile one candidate into a folder, if what is there is not of this package; returns the error, if any."""
    path = path_of(folder, job)
    if path.exists():
        known = read(path)
        if known.get("package") == package or job.who in (STOCK, STOCK_WS):
            return known.get("error", "")
    try:
        found = job.make(folder)
    except Exception as error:  # the others are not lost; the report says it
        found = {"error": f"{type(error).__name__}: {error}"[:400]}
    write(path, {**found, "who": job.who, "label": job.name, "package": package})
    return found.get("error", "")


def package_fingerprint() -> str:
    """A hash of the package's files."""
    import tlx_xdsl

    root = Path(tlx_xdsl.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16] + (f" {ASSEMBLER['ptxas']}" if ASSEMBLER["ptxas"] else "")


# --- launching --------------------------------------------------------------------------------------------------------


def launcher(found: Mapping[str, Any]) -> Any:
    """Make the launcher of a binary."""
    from tlx_xdsl.runtime.launch.launcher import Launcher
    from tlx_xdsl.runtime.launch.parameters import ArgumentSpec

    facts = {name: value for name, value in found["facts"].items() if value is not None}
    return Launcher(
        found["cubin"], name=found["name"], arguments=[ArgumentSpec(*each) for each in found["arguments"]], **facts
    )


def bound(found: Mapping[str, Any], problem: Problem, constexprs: Mapping[str, Any], stream: int, programs: int) -> Any:
    """A function that launches a binary with a problem's arguments, or text that says why it does not fit."""
    from tlx_xdsl.runtime.specialize.host_part import HostPart

    host = found.get("host")
    if host is None:
        names = [name for name, _ in found["arguments"]]
        return launcher(found).bind(problem.grid, *(problem.arguments[name] for name in names), stream=stream)
    fitted = HostPart.of_json(pickle.loads(pickle.dumps(host))).arguments(
        problem.grid, {**constexprs, **problem.arguments}, programs
    )
    if isinstance(fitted, str):
        return fitted
    grid, values = fitted
    return launcher(found).bind(grid, *values, stream=stream)
