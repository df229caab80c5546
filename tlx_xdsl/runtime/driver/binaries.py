"""Device binaries on disk, by what they were compiled from: the next process launches what this one has compiled.

What is kept is the cubin and the facts that a launcher needs. The key covers the kernel's source with all that it
calls, its types and constants, this package, and stock Triton with the settings that it reads from the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from tlx_xdsl.backend import BackendResult, KernelMetadata, KernelResources, UpTo
from tlx_xdsl.frontend.python.source import KernelSource

from . import cache
from .fingerprint import (
    compiler_changed,
    compiler_fingerprint,
    kernel_fingerprint,
    passes_fingerprint,
    values_fingerprint,
)
from .specialization import Conversion, Specialization

_KIND = "nvidia"
_ENVIRONMENT = ("TRITON_", "PTXAS_", "LLVM_")
"""How the names of settings begin that change what stock Triton makes of a text."""


@dataclass(frozen=True)
class Binary:
    """A compiled kernel, and what a launch must know of it."""

    cubin: bytes
    metadata: KernelMetadata


def binary_key(source: KernelSource, wanted: Specialization, triton_version: str) -> str:
    """The hash of all that the binary of a kernel depends on.

    Raises CompilationError where the text of something that it calls is not available.
    """
    options = (wanted.target, wanted.num_warps, wanted.num_ctas, wanted.cluster, wanted.debug, wanted.maxnreg)
    parts = (
        kernel_fingerprint(source).digest,
        # Part of the debug information.
        os.path.abspath(source.filename),
        sorted((name, str(type_)) for name, type_ in wanted.signature.items()),
        values_fingerprint(wanted.constexprs),
        (*options, wanted.symbol, wanted.enable_fp_fusion),
        compiler_fingerprint(),
        passes_fingerprint(wanted.passes),
        triton_version,
        wanted.assembler_identity(),
        sorted(each for each in os.environ.items() if each[0].startswith(_ENVIRONMENT)),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load_binary(key: str) -> Binary | None:
    """Return what was kept under a key; None where there is nothing, or nothing whole."""
    body = cache.load(key, _KIND)
    if body is None:
        return None
    facts, _, cubin = body.partition(b"\n")
    return Binary(cubin, metadata_of(json.loads(facts)))


def metadata_of(facts: Mapping[str, Any]) -> KernelMetadata:
    """Return what a launch must know, from the JSON of it."""
    found = dict(facts)
    cluster = found.pop("cluster")
    found["tensordesc_meta"] = tuple(found["tensordesc_meta"])
    return KernelMetadata(**found, cluster=None if cluster is None else tuple(cluster))


def store_binary(key: str, binary: Binary) -> None:
    """Keep a binary, unless this package has changed since it was loaded: then it is not what the key says."""
    if not compiler_changed():
        cache.store(key, json.dumps(asdict(binary.metadata)).encode() + b"\n" + binary.cubin, _KIND)


# --- products of all stages -------------------------------------------------------------------------------------------
#
# All that a compile makes, on disk, by what it was made from: the second `tlx compile` reads it.
#
# Reading loads neither xDSL nor Triton. An entry is one of `cache.py`'s: a line of JSON with the figures, and then the
# stages one after the other, compressed.


KIND = "stages"
"""The folder of such entries in the cache."""

_TEXTS = ("ttir", "ttgir", "llir", "ptx")


@dataclass(frozen=True)
class Products:
    """The products of a compile; those of stages that were not asked for are empty."""

    name: str
    """The kernel's name in the binary."""
    triton_version: str
    """That whose text it is, and which has compiled it."""
    ttir: str
    ttgir: str
    """What stock Triton got, as it is written to files: aliases of locations first."""
    llir: str = ""
    ptx: str = ""
    cubin: bytes = b""
    metadata: KernelMetadata = field(default_factory=KernelMetadata)
    resources: KernelResources = field(default_factory=KernelResources)
    fp_fusion: bool = True
    assembler: str = ""
    warnings: tuple[str, ...] = ()
    """What our passes, Triton and ptxas have warned of, as it is printed."""
    times_ms: dict[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of each stage when it was compiled."""

    def backend_result(self) -> BackendResult:
        """Return what stock Triton made of the text, for those who write bundles."""
        return BackendResult(
            "cubin" if self.cubin else "ptx", self.triton_version, "", self.llir, self.ptx, self.cubin,
            self.metadata, self.resources, fp_fusion=self.fp_fusion, assembler=self.assembler,
        )  # fmt: skip


def product_key(
    source: KernelSource,
    wanted: Specialization,
    triton_version: str,
    *,
    upto: UpTo | None,
    num_stages: int,
    conversion: Conversion,
    mends: bool | None = True,
) -> str:
    """The hash of all that the products up to a stage depend on (None: our own text).

    `mends` says whether what the Triton version miscompiles is put right; None is so for all but plain kernels.

    Raises CompilationError where the text of something that the kernel calls is not available.
    """
    parts = binary_key(source, wanted, triton_version), upto, num_stages, conversion, mends
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load_products(key: str) -> Products | None:
    """Return what was kept under a key; None where there is nothing, or nothing whole."""
    body = cache.load(key, KIND)
    if body is None:
        return None
    line, _, stages = body.partition(b"\n")
    facts: dict[str, Any] = json.loads(line)
    content, at = zlib.decompress(stages), 0
    parts: dict[str, Any] = {}
    for name, size in cast("dict[str, int]", facts.pop("sizes")).items():
        parts[name] = content[at : at + size]
        at += size
    parts |= {name: parts[name].decode() for name in _TEXTS}
    facts["metadata"] = metadata_of(facts["metadata"])
    facts["resources"] = KernelResources(**facts["resources"])
    facts["warnings"] = tuple(facts["warnings"])
    return Products(**facts, **parts)


def store_products(key: str, products: Products) -> None:
    """Keep products, unless this package has changed since it was loaded: then they are not what the key says."""
    if compiler_changed():
        return
    facts = asdict(products)
    parts = {name: facts.pop(name).encode() for name in _TEXTS} | {"cubin": facts.pop("cubin")}
    facts["sizes"] = {name: len(part) for name, part in parts.items()}
    cache.store(key, json.dumps(facts).encode() + b"\n" + zlib.compress(b"".join(parts.values()), 1), KIND)
