"""Build the programs of `examples/ttl` with the wheel's own `ttnn`, for tensors on a mock card of it.

    python -m tests.conformance.ttl_card          # Python 3.12 with ttnn 0.81.1 and this package; no card

A mock card has memory and coordinates but no cores, so nothing runs. `ttnn` checks each descriptor and gives each
tensor its address. Prints a line for each kernel, and returns 1 if one is refused.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tlx_xdsl.tools.launch_line.loading import run_file
from tlx_xdsl.ttl import runtime
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime.launch import for_device, to_device

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "ttl").glob("*.py"))
_CLUSTER = """
arch: {0: wormhole_b0}
chips: {0: [0, 0, 0, 0]}
ethernet_connections: []
chips_with_mmio: [{0: 0}]
harvesting: {0: {noc_translation: true, harvest_mask: 0}}
boards:
  - [{board_id: 1649267441664}, {board_type: n150}, {chips: [0]}]
"""


def main() -> int:
    """Build all programs; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = Path(folder) / "cluster.yaml"
        cluster.write_text(_CLUSTER)
        os.environ |= {"TT_METAL_MOCK_CLUSTER_DESC_PATH": str(cluster), "TT_METAL_SLOW_DISPATCH_MODE": "1"}
        os.environ |= {"TT_METAL_CACHE": folder, "TT_METAL_LOGGER_LEVEL": "FATAL"}
        ttnn: Any = importlib.import_module("ttnn")
        device = ttnn.open_device(device_id=0)
        failed = [path.stem for path in EXAMPLES if not _builds(path, device)]
    print(f"{len(EXAMPLES) - len(failed)} of {len(EXAMPLES)} examples become programs of ttnn on {device.arch()}")
    sys.stdout.flush()
    # The binding lists what is left of it at the end of a process.
    os._exit(bool(failed))


def _builds(path: Path, device: Any) -> bool:
    def build(kernel: Kernel, *arguments: Any) -> None:
        specs = runtime.specs_of(kernel, arguments)
        compiled = runtime.compile_kernel(kernel, specs, for_device(device))
        given = [to_device(device, *each) for each in zip("abcdefgh", arguments, specs, strict=False)]
        tensors = [each for each in given if not isinstance(each, int | float)]
        program = runtime.program_descriptor(compiled, tensors)
        words = [len(each.compile_time_args) for each in program.kernels]
        print(f"{kernel.name}: {len(words)} threads with {words} words, {len(program.cbs)} buffers,", end=" ")
        print(f"{len(program.semaphores)} semaphores")
        raise _Built

    run, runtime.run = runtime.run, build
    try:
        run_file(str(path)).main()
    except _Built:
        return True
    except Exception as error:
        print(f"{path.stem}: {type(error).__name__}: {str(error)[:300]}")
    finally:
        runtime.run = run
    return False


class _Built(Exception):
    """The program is there, and what the example does with its result is of no interest."""


if __name__ == "__main__":
    main()
