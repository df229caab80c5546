"""Device binaries on disk, by what they were compiled from: the next process launches what this one has compiled.

What is kept is the cubin and the facts that a launcher needs. The key covers the kernel's source with all that it
calls, its types and constants, this package, and stock Triton with the settings that it reads from the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tlx_xdsl.backend.result import KernelMetadata
from tlx_xdsl.frontend.python.source import KernelSource

from . import cache
from .fingerprint import (
    compiler_changed,
    compiler_fingerprint,
    kernel_fingerprint,
    passes_fingerprint,
    values_fingerprint,
)
from .specialization import Specialization

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
        sorted(each for each in os.environ.items() if each[0].startswith(_ENVIRONMENT)),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load_binary(key: str) -> Binary | None:
    """What was kept under a key; None where there is nothing, or nothing whole."""
    body = cache.load(key, _KIND)
    if body is None:
        return None
    facts, _, cubin = body.partition(b"\n")
    return Binary(cubin, metadata_of(json.loads(facts)))


def metadata_of(facts: Mapping[str, Any]) -> KernelMetadata:
    """What a launch must know, from the JSON of it."""
    found = dict(facts)
    cluster = found.pop("cluster")
    found["tensordesc_meta"] = tuple(found["tensordesc_meta"])
    return KernelMetadata(**found, cluster=None if cluster is None else tuple(cluster))


def store_binary(key: str, binary: Binary) -> None:
    """Keep a binary, unless this package has changed since it was loaded: then it is not what the key says."""
    if not compiler_changed():
        cache.store(key, json.dumps(asdict(binary.metadata)).encode() + b"\n" + binary.cubin, _KIND)
