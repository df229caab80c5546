"""Give the examples of `examples/ttl` to the wheel's own `ttnn`, for tensors on a mock card of it.

    python -m tests.conformance.ttl_card      # Python 3.12 with ttnn 0.81.1 and this package, and its wheel; no card

A mock card has memory and coordinates but no cores, so nothing runs. `ttnn` checks each program and gives each tensor
its address, then compiles the kernels; its compiler is a stand-in (`ttl_card_compiler.py`), which parses them with the
flags that it gets and leaves no program to load. Prints a line for each kernel; returns 1 if one is refused.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.ttl_calls import use_mock_card
from tests.unit.ttl.metalium.vendor_headers import VARIABLE, find_headers
from tlx_xdsl.tools.launch_line.loading import run_file
from tlx_xdsl.ttl import runtime
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime.launch import for_device, to_device

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "ttl").glob("*.py"))


def main() -> int:
    """Build and compile all programs; return the exit status."""
    if find_headers() is None:
        print(f"no wheel of ttnn: `make ttl-headers`, or set {VARIABLE}")
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(folder)
        ttnn: Any = importlib.import_module("ttnn")
        device = ttnn.open_device(device_id=0)
        failed = [path.stem for path in EXAMPLES if not _compiles(path, ttnn, device)]
        lines = (folder / "log").read_text().splitlines()
    refused = [line for line in lines if not line.startswith("ok ")]
    print(*refused, sep="\n")
    print(f"{len(EXAMPLES) - len(failed)} of {len(EXAMPLES)} examples become programs of ttnn on {device.arch()}")
    print(f"{len(lines) - len(refused)} of {len(lines)} compilations of them by ttnn parse")
    sys.stdout.flush()
    # The binding lists what is left of it at the end of a process.
    os._exit(bool(failed or refused))


def _prepare(folder: Path) -> None:
    """A mock card, and the package's files with another compiler."""
    spec = importlib.util.find_spec("ttnn")
    assert spec is not None, "ttnn is installed"
    assert spec.origin is not None, "with code"
    installed, root = Path(spec.origin).parent, folder / "root"
    compiler = root / "runtime" / "sfpi" / "compiler" / "bin" / "riscv-tt-elf-g++"
    compiler.parent.mkdir(parents=True)
    for each in installed.iterdir():
        if each.name != "runtime":
            (root / each.name).symlink_to(each)
    (root / "runtime" / "hw").symlink_to(installed / "runtime" / "hw")
    compiler.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.conformance.ttl_card_compiler "$@"\n')
    compiler.chmod(0o755)
    use_mock_card(folder)
    os.environ |= {"TT_METAL_CACHE": str(folder / "cache"), "TT_METAL_LOGGER_LEVEL": "FATAL"}
    os.environ["TT_METAL_LOGS_PATH"] = str(folder)
    os.environ |= {"TT_METAL_RUNTIME_ROOT": str(root), "TTL_CARD_LOG": str(folder / "log")}
    os.environ["PYTHONPATH"] = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    if (wheel := os.environ.get(VARIABLE)) is not None:
        os.environ[VARIABLE] = str(Path(wheel).resolve())


def _compiles(path: Path, ttnn: Any, device: Any) -> bool:
    def build(kernel: Kernel, *arguments: Any) -> None:
        specs = runtime.specs_of(kernel, arguments)
        compiled = runtime.compile_kernel(kernel, specs, for_device(device))
        given = [to_device(device, *each) for each in zip("abcdefgh", arguments, specs, strict=False)]
        tensors = [each for each in given if not isinstance(each, int | float)]
        program = runtime.program_descriptor(compiled, tensors)
        words = [len(each.compile_time_args) for each in program.kernels]
        print(f"{kernel.name}: {len(words)} threads with {words} words, {len(program.cbs)} buffers,", end=" ")
        print(f"{len(program.semaphores)} semaphores")
        try:
            ttnn.generic_op(tensors, program)
        except RuntimeError as error:
            # No program was linked.
            if ".elf" not in str(error):
                raise
        raise _Compiled

    run, runtime.run = runtime.run, build
    try:
        run_file(str(path)).main()
    except _Compiled:
        return True
    except Exception as error:
        print(f"{path.stem}: {type(error).__name__}: {str(error)[:300]}")
    finally:
        runtime.run = run
    return False


class _Compiled(Exception):
    """The program is there, and what the example does with its result is of no interest."""


if __name__ == "__main__":
    sys.exit(main())
