"""Our C++ against the headers of the wheel of ttnn: what the vendor's compiler would read, for each processor."""

from typing import Any

import pytest

from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tests.unit.ttl.metalium.vendor_headers import VARIABLE, VERSION, compile_kernels, find_headers
from tests.unit.ttl.transforms.ttkernel_calls import kernel
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.cpp import PROFILES, print_cpp
from tlx_xdsl.ttl.transforms.convert_ttkernel_to_emitc import ConvertTTKernelToEmitCPass

HEADERS = find_headers()
CURRENT = [name for name, profile in PROFILES.items() if profile.has_startup]

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(HEADERS is None, reason=f"no wheel of ttnn {VERSION}: `make ttl-headers`, or set {VARIABLE}"),
]


def compiled(sources: dict[str, str], manifest: dict[str, Any]) -> list[str]:
    assert HEADERS is not None
    return compile_kernels(HEADERS, sources, manifest)


def thread(name: str, kind: str, arguments: list[int]) -> dict[str, Any]:
    return {"name": name, "kind": kind, "processor": "RISCV_1", "noc": "NOC_0", "compile_time_args": arguments}


MANIFEST: dict[str, Any] = {
    "cbs": [{"index": 0, "data_format": "Float32", "page_bytes": 4096}],
    "tensors": [{"layout": {"kind": "sharded", "grid": [2, 2], "tiles_per_shard": [1, 1]}, "page_bytes": 4096}],
    "threads": [thread("compute", "compute", [0]), thread("noc", "noc", [0, 1])],
    "options": {"fp32_dest_acc_en": True, "dst_full_sync_en": False},
}


def every_call(profile: str) -> dict[str, str]:
    module = parse_module(kernel())
    ConvertTTKernelToEmitCPass(profile).run(module)
    return print_cpp(module, lines=False)


@pytest.mark.parametrize("profile", CURRENT)
def test_every_call_compiles(profile: str) -> None:
    """The kernel has every operation of `ttkernel`."""
    assert not compiled(every_call(profile), MANIFEST)


@pytest.mark.parametrize("call", ["noc_async_read_barier();", "noc_async_read_page(1);"])
def test_a_wrong_call_does_not_compile(call: str) -> None:
    sources = every_call(CURRENT[0])
    sources["noc.cpp"] = sources["noc.cpp"].replace("noc_async_read_barrier();", call)
    assert "error" in "\n".join(compiled(sources, MANIFEST | {"threads": MANIFEST["threads"][1:]}))
