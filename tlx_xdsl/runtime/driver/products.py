"""All that a compile makes, on disk, by what it was made from: the second `tlx compile` reads it.

Reading loads neither xDSL nor Triton. An entry is one of `cache.py`'s: a line of JSON with the figures, and then the
stages one after the other, compressed.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from tlx_xdsl.backend import BackendResult, KernelMetadata, KernelResources, UpTo
from tlx_xdsl.frontend.python.source import KernelSource

from . import cache
from .binaries import binary_key, metadata_of
from .fingerprint import compiler_changed
from .specialization import Conversion, Specialization

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
    warnings: tuple[str, ...] = ()
    """What our passes, Triton and ptxas have warned of, as it is printed."""
    times_ms: dict[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of each stage when it was compiled."""

    def backend_result(self) -> BackendResult:
        """What stock Triton made of the text, for those who write bundles."""
        return BackendResult(
            "cubin" if self.cubin else "ptx", self.triton_version, "", self.llir, self.ptx, self.cubin,
            self.metadata, self.resources, fp_fusion=self.fp_fusion,
        )  # fmt: skip


def product_key(
    source: KernelSource,
    wanted: Specialization,
    triton_version: str,
    *,
    upto: UpTo | None,
    num_stages: int,
    conversion: Conversion,
) -> str:
    """The hash of all that the products up to a stage depend on (None: our own text).

    Raises CompilationError where the text of something that the kernel calls is not available.
    """
    parts = binary_key(source, wanted, triton_version), upto, num_stages, conversion
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load_products(key: str) -> Products | None:
    """What was kept under a key; None where there is nothing, or nothing whole."""
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
