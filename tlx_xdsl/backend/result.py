"""The result of a compile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from tlx_xdsl.errors import SourceLocation, render

from .mends import Mended
from .options import UpTo


@dataclass(frozen=True)
class KernelMetadata:
    """Facts about the kernel that a launcher needs; the names are those of Triton's own metadata.

    `name` is the entry point in the PTX. `shared` is dynamic shared memory in bytes. `num_warps` counts ALL
    warps of a CTA, those of the warp-specialised partitions too. `tmem_size` is in tensor memory columns.
    `tensordesc_meta` holds one mapping per tensor descriptor argument (`swizzle`, `elem_size`, `elem_type`,
    `block_size`, ...), in argument order. The scratch sizes and alignments are in bytes, per CTA. `cluster`
    is the cluster shape that the binary demands (`.reqnctapercluster`), None if it leaves the cluster to the
    launch.
    """

    name: str = ""
    shared: int = 0
    num_warps: int = 0
    num_ctas: int = 1
    tmem_size: int = 0
    tensordesc_meta: tuple[Mapping[str, object], ...] = ()
    global_scratch_size: int = 0
    global_scratch_align: int = 1
    profile_scratch_size: int = 0
    profile_scratch_align: int = 1
    cluster: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class KernelResources:
    """The resources that a kernel uses, as `ptxas -v` reports them.

    `registers` are those that a thread has at the launch; warp-specialised tasks then trade theirs. Spills and
    stack are in bytes per thread. `static_shared_bytes` is shared memory that the binary declares itself, beside
    the dynamic shared memory of the metadata; `constant_bytes` sums the constant banks; `barriers` counts the
    named barriers, of which a CTA has 16. ptxas leaves out what is zero, and newer ones leave out the banks.
    """

    registers: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    static_shared_bytes: int = 0
    constant_bytes: int = 0
    barriers: int = 0


@dataclass(frozen=True)
class BackendWarning:
    """A warning of Triton or ptxas, at the place in the user's source that it concerns.

    `str(warning)` is what the command lines print: `file:line:col: warning: text`, the source line, the notes.
    """

    text: str
    location: SourceLocation | None = None
    source_line: str | None = None
    notes: tuple[str, ...] = ()
    once: bool = False
    """True if one of a line is enough for all configurations of a kernel."""

    def __str__(self) -> str:
        """Return the rendered warning."""
        return render("warning", self.text, self.location, self.source_line, self.notes)


@dataclass(frozen=True)
class BackendResult:
    """The products of a compile up to and including stage `upto`; those of later stages are empty.

    `ttgir` is the text after the stock passes. `metadata` is filled from `llir` on (`name` and
    `tensordesc_meta` from `ttgir` on, `cluster` from `ptx` on), `resources` by `cubin`. `warnings` holds
    ptxas's performance warnings (`C7510: ...`) and what else Triton and ptxas warned about.
    `times_ms` gives the wall time in milliseconds of `parse`, `passes`, `llir`, `ptx` and `cubin`, as far as
    they ran. `log` is everything that was printed meanwhile. `fp_fusion` says whether `a * b + c` could become a fused
    multiply-add. `mended` names what of the version's defects was put right in `ptx`. `assembler` is the ptxas that
    made the binary: `ptxas 13.4.59 (triton's ptxas-blackwell)`.
    """

    upto: UpTo
    triton_version: str
    ttgir: str
    llir: str = ""
    ptx: str = ""
    cubin: bytes = b""
    metadata: KernelMetadata = field(default_factory=KernelMetadata)
    resources: KernelResources = field(default_factory=KernelResources)
    warnings: tuple[BackendWarning, ...] = ()
    times_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    log: str = ""
    fp_fusion: bool = True
    mended: tuple[Mended, ...] = ()
    assembler: str = ""

    def _repr_html_(self) -> str:
        """The figures as a table, and the texts to unfold, for a notebook."""
        rows: dict[str, object] = {"Triton": self.triton_version}
        if self.cubin:
            rows |= {
                "assembler": self.assembler,
                "registers per thread": self.resources.registers,
                "spill stores and loads, bytes per thread": (
                    f"{self.resources.spill_store_bytes} and {self.resources.spill_load_bytes}"
                ),
                "shared memory, bytes": self.metadata.shared,
                "tensor memory, columns": self.metadata.tmem_size,
                "warps": self.metadata.num_warps,
                "cubin, bytes": len(self.cubin),
            }
        rows |= {f"{stage}, ms": f"{ms:.1f}" for stage, ms in self.times_ms.items()}
        table = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>" for name, value in rows.items()
        )
        warnings = "".join(f"<pre>{escape(str(warning))}</pre>" for warning in self.warnings)
        texts = {"TTGIR after Triton's passes": self.ttgir, "LLVM IR": self.llir, "PTX": self.ptx}
        folded = "".join(
            f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
            for name, text in texts.items()
            if text
        )
        return f"<div><table>{table}</table>{warnings}{folded}</div>"
