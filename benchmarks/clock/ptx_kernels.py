"""Small kernels in PTX: their frame, how they are assembled, loaded and launched.

All have the same parameters, so that one function launches any: where results go, an array, two numbers, a tensor map.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tlx_xdsl.runtime.launch.cuda_driver import (
    ClusterDimension,
    CudaDriver,
    FunctionAttribute,
    LaunchAttribute,
    LaunchAttributeId,
    LaunchAttributeValue,
    LaunchConfig,
)

TARGET = "sm_90a"
NEVER = 123456789
"""A value of `%m` that no launch has: what is stored under this condition keeps results alive."""


def kernel(
    name: str, body: str, *, threads: int = 0, registers: int = 0, keep: Iterable[str] = (), declared: str = ""
) -> str:
    """PTX of a kernel. `body` has `%out`, `%data`, `%n`, `%m`, `%map` and what else is declared here.

    `threads` is `.reqntid`, `registers` `.maxnreg`; registers of 32 bits in `keep` are stored under a condition that no
    launch fulfils, so that ptxas leaves their computation in.
    """
    limits = (f".reqntid {threads}, 1, 1\n" if threads else ".maxntid 1024\n") + (
        f".maxnreg {registers}\n" if registers else ""
    )
    kept = "".join(f"    @%kept st.global.b32 [%out+{1024 + 4 * at}], {each};\n" for at, each in enumerate(keep))
    return f""".version 8.3
.target {TARGET}
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry {name}(.param .u64 p_out, .param .u64 p_data, .param .u32 p_n, .param .u32 p_m,
    .param .align 64 .b8 p_map[128])
{limits}{{
    .reg .b64 %out, %data, %map, %t0, %t1, %mine, %d<32>;
    .reg .b32 %n, %m, %me, %warp, %lane, %cta, %threads, %smem, %r<64>;
    .reg .pred %p<8>, %kept, %first;
{declared}
    ld.param.u64 %out, [p_out];
    ld.param.u64 %data, [p_data];
    ld.param.u32 %n, [p_n];
    ld.param.u32 %m, [p_m];
    cvta.to.global.u64 %out, %out;
    mov.u64 %map, p_map;
    cvta.param.u64 %map, %map;
    mov.u32 %me, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    shr.u32 %warp, %me, 5;
    and.b32 %lane, %me, 31;
    mov.u32 %smem, smem;
    setp.eq.u32 %kept, %m, {NEVER};
    setp.eq.u32 %first, %me, 0;
    // %mine: where a warp puts its cycles
    shr.u32 %r63, %threads, 5;
    mad.lo.u32 %r63, %cta, %r63, %warp;
    mad.wide.u32 %mine, %r63, 8, %out;
{body}
{kept}    ret;
}}
"""


def begin(barrier: bool = True) -> str:
    """Read the clock, all warps at once."""
    return ("    bar.sync 0;\n" if barrier else "") + "    mov.u64 %t0, %clock64;\n"


def end(where: str = "%mine") -> str:
    """Store the cycles since `begin`."""
    return f"""    mov.u64 %t1, %clock64;
    sub.u64 %t1, %t1, %t0;
    st.global.u64 [{where}], %t1;
"""


def loop(body: str, label: str = "loop") -> str:
    """Repeat `body` `%n` times; `%r62` counts."""
    return f"""    mov.u32 %r62, 0;
{label}:
{body}
    add.u32 %r62, %r62, 1;
    setp.lt.u32 %p7, %r62, %n;
    @%p7 bra {label};
"""


def wait(barrier: str, parity: str, label: str) -> str:
    """Wait for a phase of an mbarrier."""
    return f"""{label}:
    mbarrier.try_wait.parity.shared::cta.b64 %p6, [{barrier}], {parity};
    @!%p6 bra {label};
"""


def ptxas() -> Path:
    """The assembler of the Triton that is installed."""
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"


def assemble(text: str) -> bytes:
    """Return the cubin of PTX. Raises RuntimeError with what ptxas says."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text, encoding="utf-8")
        command = [os.fspath(ptxas()), f"-arch={TARGET}", "-o", os.fspath(target), os.fspath(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr or done.stdout)
        return target.read_bytes()


class Loaded:
    """A kernel on the current GPU."""

    driver = CudaDriver()

    def __init__(self, cubin: bytes, name: str, shared: int = 0, cluster: int = 1) -> None:
        self.shared, self.cluster = shared, cluster
        self.driver.ensure_context()
        self.function = self.driver.get_function(self.driver.load_module(cubin), name)
        if shared > 48 << 10:
            self.driver.set_function_attribute(self.function, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)

    def bind(
        self, grid: int, threads: int, out: int, *, data: int = 0, n: int = 0, m: int = 0, tensor_map: Any = None,
        stream: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return what launches it."""
        blank = (ctypes.c_char * 256)()
        where = (
            tensor_map.address if tensor_map is not None else ctypes.addressof(blank) + (-ctypes.addressof(blank)) % 64
        )
        values = [ctypes.c_uint64(out), ctypes.c_uint64(data), ctypes.c_uint32(n), ctypes.c_uint32(m)]
        pointers = (ctypes.c_void_p * 5)(*[ctypes.addressof(each) for each in values], where)
        config = LaunchConfig()
        config.grid_x, config.grid_y, config.grid_z = grid, 1, 1
        config.block_x, config.block_y, config.block_z = threads, 1, 1
        config.shared_bytes, config.stream = self.shared, stream
        if self.cluster > 1:
            attribute = LaunchAttribute(
                id=LaunchAttributeId.CLUSTER_DIMENSION,
                value=LaunchAttributeValue(cluster_dimension=ClusterDimension(self.cluster, 1, 1)),
            )
            config.attributes = (LaunchAttribute * 1)(attribute)
            config.attribute_count = 1
        alive = (blank, values, pointers, tensor_map, config)
        return self.driver.prepare_launch(config, self.function, pointers, keep_alive=alive, detail="a small kernel")


def is_broken(torch: Any) -> bool:
    """Return whether the process has lost its GPU: a kernel has faulted."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


class TensorMap2D:
    """A tensor map of rows of 16-bit elements, in boxes, with the 128-byte swizzle."""

    def __init__(
        self, driver: CudaDriver, address: int, rows: int, columns: int, box_rows: int, box_columns: int
    ) -> None:
        from tlx_xdsl.runtime.launch.cuda_driver import TensorMapDataType

        self.memory = (ctypes.c_char * 256)()
        self.address = ctypes.addressof(self.memory) + (-ctypes.addressof(self.memory)) % 128
        driver.encode_tiled(
            self.address, data_type=TensorMapDataType.FLOAT16, element_bytes=2, address=address,
            shape=[columns, rows], strides=[columns * 2], box=[box_columns, box_rows], swizzle=3, nan_fill=False,
            what="a matrix",
        )  # fmt: skip
