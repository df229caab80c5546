"""C++ of kernels against TT-Metalium's own headers, which the wheel of ttnn holds: a compiler reads it, nothing runs.

`python -m tests.unit.ttl.metalium.vendor_headers FOLDER` compiles all kernels below a folder, in which
`TTL_RECORD_CPP=FOLDER pytest tests/unit/ttl` keeps what tests print. `make ttl-headers` does all of it.

Flags, defines, folders and the files beside a kernel are those that ttnn 0.81.1 makes for a Wormhole card (its just-in-
time compilation, logged on a mock card), without what only the vendor's compiler knows. Two headers come with that
compiler, not with the wheel: `vendor_include/` has stand-ins for them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tlx_xdsl.ttl.metalium.build import find_compiler
from tlx_xdsl.ttl.metalium.program import Program

VERSION = "0.81.1"
VARIABLE = "TTNN_WHEEL"
"""The environment variable that names the wheel."""
_BUILD = Path(__file__).parents[4] / "build" / "ttnn"
_STAND_INS = Path(__file__).parent / "vendor_include"
_SUFFIXES = (".h", ".hpp", ".inl", ".cc", ".cpp")
_OLDER_COMPILERS = {
    b"static_assert(false": b"static_assert(!sizeof(__PRETTY_FUNCTION__)",
    b"#pragma GCC unroll ": b"#pragma GCC unrolled ",
}
"""What compilers before the vendor's refuse in templates: an assertion where none is made, a count from a parameter."""
_LARGEST_LOG = 4000

_FOLDERS = """
. ttnn ttnn/cpp tt_metal/hw/inc tt_metal/tt-llk/common tt_metal/tt-llk/tools/include tt_metal/hostdevcommon/api
tt_metal/api tt_metal/hw/ckernels/{arch}/metal/common tt_metal/hw/ckernels/{arch}/metal/llk_io
tt_metal/hw/inc/internal/tt-1xx tt_metal/hw/inc/internal/tt-1xx/{family}
tt_metal/hw/inc/internal/tt-1xx/{family}/{arch}_defines tt_metal/hw/inc/internal/tt-1xx/{family}/noc
tt_metal/tt-llk/tt_llk_{arch}/common/inc tt_metal/tt-llk/tt_llk_{arch}/llk_lib
tt_metal/hw/ckernels/{arch}/metal/llk_api tt_metal/hw/ckernels/{arch}/metal/llk_api/llk_sfpu
tt_metal/hw/firmware/src/tt-1xx
"""
_DEFINES = """
IS_NOT_POW2_NUM_DRAM_BANKS=1 IS_NOT_POW2_NUM_L1_BANKS=1 NUM_DRAM_BANKS=12 NUM_L1_BANKS=80 PCIE_NOC_X=0 PCIE_NOC_Y=3
TENSIX_FIRMWARE LOCAL_MEM_EN=0 ROUTING_FW_ENABLED PROGRAMMABLE_CORE_TYPE=0 DISPATCH_MESSAGE_ADDR=4290183304
KERNEL_BUILD NOC_MODE=0 FULL_KERNEL_NAME="kernel"
"""
_COMPUTE = ("unpack", "math", "pack")
_FORMATS = dict(Float32=0, Float16=1, Float16_b=5, Bfp8_b=6, Bfp4_b=7, Int32=8, UInt16=9, UInt32=24, UInt8=30)
"""The numbers of `tt::DataFormat`."""
_BUFFERS = 32


def find_headers() -> Path | None:
    """Unpack the wheel's headers, once, and return the folder `ttnn` of them; None where there is no wheel."""
    given = os.environ.get(VARIABLE)
    found = [Path(given)] if given else sorted(_BUILD.glob(f"ttnn-{VERSION}-*.whl"))
    if not found:
        return None
    folder = _BUILD / found[0].stem
    if not folder.exists():
        _BUILD.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=_BUILD))
        with zipfile.ZipFile(found[0]) as wheel:
            for name in wheel.namelist():
                if name.startswith("ttnn/") and name.endswith(_SUFFIXES):
                    path = temporary / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    text = wheel.read(name)
                    for vendors, older in _OLDER_COMPILERS.items():
                        text = text.replace(vendors, older)
                    path.write_bytes(text)
        try:
            temporary.rename(folder)
        except OSError:
            # Another process was first.
            shutil.rmtree(temporary)
            if not folder.exists():
                raise
    return folder / "ttnn"


def compile_kernels(headers: Path, sources: Mapping[str, str], manifest: Mapping[str, Any]) -> list[str]:
    """Compile each thread's C++ for the processors that run it; returns what the compiler says against it."""
    return [
        message for thread in manifest["threads"] for message in _compile_thread(headers, sources, manifest, thread)
    ]


def _compile_thread(
    headers: Path, sources: Mapping[str, str], manifest: Mapping[str, Any], thread: Mapping[str, Any]
) -> Iterator[str]:
    name, text = Program(sources, manifest).source(thread)
    arguments = _arguments(manifest, thread)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "chlkc_descriptors.h").write_text(_descriptors(manifest))
        (folder / "defines_generated.h").write_text("#pragma once\n")
        (folder / "kernel_includes.hpp").write_text(f'void kernel_main();\n#line 1 "{name}"\n{text}')
        for number, unit in enumerate(_COMPUTE):
            defines = f'#define TRISC_{unit.upper()}\nvoid kernel_main();\n#line 1 "{name}"\n'
            (folder / f"chlkc_{unit}.cpp").write_text(defines + text)
            if thread["kind"] == "compute":
                unit_defines = [
                    f"UCK_CHLKC_{unit.upper()}",
                    f"COMPILE_FOR_TRISC={number}",
                    f"PROCESSOR_INDEX={number + 2}",
                ]
                yield from _compile(headers, folder, "trisck.cc", [*arguments, *unit_defines])
        if thread["kind"] != "compute":
            second = thread["processor"] == "RISCV_1"
            core = "NCRISC" if second else "BRISC"
            defines = [f"COMPILE_FOR_{core}", f"PROCESSOR_INDEX={int(second)}", f"NOC_INDEX={thread['noc'][-1]}"]
            yield from _compile(headers, folder, f"{core.lower()}k.cc", [*arguments, *defines])


def _arguments(manifest: Mapping[str, Any], thread: Mapping[str, Any]) -> list[str]:
    """Compile-time arguments with the words that a host appends: of an interleaved tensor, the size of a page."""
    words: list[int] = [*thread["compile_time_args"]]
    if thread["kind"] != "compute":
        buffers = len(manifest["cbs"])
        words = words[:buffers]
        for word, tensor in zip(thread["compile_time_args"][buffers:], manifest["tensors"], strict=True):
            words += [word, tensor["page_bytes"], *_shard_words(tensor["layout"])]
    return [f"KERNEL_COMPILE_TIME_ARGS={','.join(map(str, words))}"]


def _shard_words(layout: Mapping[str, Any]) -> list[int]:
    """Words of a sharded tensor: rank, number of banks, shape, shape of a shard, coordinates of two banks each."""
    if layout["kind"] != "sharded":
        return []
    grid, tiles = layout["grid"], layout["tiles_per_shard"]
    banks = grid[0] * grid[1]
    return [2, banks, grid[0] * tiles[0], grid[1] * tiles[1], *tiles, *[0] * -(-banks // 2)]


def _compile(headers: Path, folder: Path, main: str, defines: list[str]) -> Iterator[str]:
    arch, family = "wormhole_b0", "wormhole"
    within = folder / "processor"
    within.mkdir(exist_ok=True)
    paths = [f"-I{headers / each}" for each in _FOLDERS.format(arch=arch, family=family).split()]
    names = [f"-D{each}" for each in (*_DEFINES.split(), "ARCH_WORMHOLE", *defines)]
    source = headers / "tt_metal/hw/firmware/src/tt-1xx" / main
    done = subprocess.run(
        [find_compiler(), "-std=c++17", *host_flags(), "-I.", "-I..", *paths, *names, str(source)],
        cwd=within,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [each for each in done.stderr.splitlines() if re.search(r"\berror\b", each)]
        yield "\n".join(lines)[:_LARGEST_LOG] or done.stderr[:_LARGEST_LOG]


def host_flags() -> list[str]:
    """Flags of g++ in the place of the vendor's compiler: syntax only, with pointers of 32 bits.

    The headers of C++ are those for programs of 64 bits: others are not installed.
    """
    command = [find_compiler(), "-x", "c++", "-E", "-v", "/dev/null"]
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    paths = [str(_STAND_INS), *re.findall(r"^ (/\S+)$", asked.stderr, re.MULTILINE)]
    flags = ["-m32", "-fsyntax-only", "-fno-exceptions", "-fno-rtti", "-Wno-attributes"]
    return [*flags, *(part for each in paths for part in ("-isystem", each))]


def _descriptors(manifest: Mapping[str, Any]) -> str:
    """`chlkc_descriptors.h`: the formats and shapes of circular buffers as constants."""
    formats = [255] * _BUFFERS
    sizes = [1088] * _BUFFERS
    for cb in manifest["cbs"]:
        formats[cb["index"]] = _FORMATS[cb["data_format"]]
        sizes[cb["index"]] = cb["page_bytes"]
    tables = {"src_format": formats, "dst_format": formats, "tile_size": sizes}
    same = {"tile_num_faces": 4, "partial_face": 0, "tile_face_r_dim": 16, "narrow_tile": 0, "tile_r_dim": 32}
    same |= {"tile_c_dim": 32, "num_faces_r_dim": 2, "num_faces_c_dim": 2}
    tables |= {name: [number] * _BUFFERS for name, number in same.items()}

    def table(side: str, name: str) -> str:
        type_ = "uint16_t" if name == "tile_size" else "uint8_t"
        return f"constexpr {type_} {side}_{name}[{_BUFFERS}] = {{{','.join(map(str, tables[name]))}}};"

    options = manifest["options"]
    lines = ["#pragma once", "#if defined(UCK_CHLKC_MATH) || defined(UCK_CHLKC_PACK)", '#include "llk_defs.h"']
    lines += ["constexpr ckernel::MathFidelity MATH_FIDELITY = static_cast<ckernel::MathFidelity>(4);"]
    lines += ["constexpr bool APPROX = false;", "#endif", "#if !defined(UCK_CHLKC_PACK)"]
    lines += [table("unpack", each) for each in tables]
    lines += ["#endif", "#if !defined(UCK_CHLKC_MATH) && !defined(UCK_CHLKC_UNPACK)"]
    lines += [table("pack", each) for each in tables]
    lines += ["#if defined(UCK_CHLKC_PACK)", table("unpack", "src_format"), "#endif", "#endif"]
    lines += [f"constexpr bool DST_ACCUM_MODE = {str(options['fp32_dest_acc_en']).lower()};"]
    lines += [f"#define DST_SYNC_MODE DstSync::Sync{'Full' if options['dst_full_sync_en'] else 'Half'}", ""]
    return "\n".join(lines)


def main(folder: str) -> int:
    """Compile the kernels in a folder, each a JSON file with `sources` and `manifest`; return the exit status."""
    headers = find_headers()
    if headers is None:
        print(
            f"no ttnn-{VERSION} wheel in {_BUILD}: `make ttl-headers` downloads it, or set {VARIABLE}", file=sys.stderr
        )
        return 2
    files = sorted(Path(folder).glob("*.json"))

    def compiled(file: Path) -> list[str]:
        kernel = json.loads(file.read_text())
        return compile_kernels(headers, kernel["sources"], kernel["manifest"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(files, pool.map(compiled, files), strict=True))
    failed = {file: messages for file, messages in results.items() if messages}
    for file, messages in failed.items():
        print(f"{file}:", *messages, sep="\n")
    print(f"{len(files) - len(failed)} kernels compile against the headers of ttnn {VERSION}, {len(failed)} do not")
    return bool(failed) or not files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
