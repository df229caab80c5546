"""The part of `tlx doctor` about running the C++ of TTL kernels."""

from __future__ import annotations

from collections.abc import Iterator

from tlx_xdsl.tools.commands.doctor import Finding

from ..metalium.machine import MetaliumError, find_compiler


def findings() -> Iterator[Finding]:
    """Return what is found here about a C++ compiler."""
    try:
        yield Finding("C++ compiler", f"{find_compiler()} (tlx ttl run --machine cpp)")
    except MetaliumError as error:
        remedy = "to run the C++ of TTL kernels; tlx ttl compile, and run on the other machines, work without"
        yield Finding("C++ compiler", error.message, remedy)
