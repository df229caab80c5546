"""A stand-in for the vendor's compiler when `ttnn` compiles kernels: g++ parses them, firmware is the wheel's.

`ttl_card.py` starts it by a script under the compiler's name. Its arguments are the compiler's; a line for each kernel
goes to the file that `TTL_CARD_LOG` names: `ok` or the first error, and the C++ file.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.unit.ttl.metalium.vendor_headers import find_headers, host_flags

VERSION = "riscv-tt-elf-g++ (sfpi 7.89.0) 15.1.0"


def main(arguments: list[str]) -> int:
    """Do what `ttnn` expects of the compiler; returns the exit status."""
    if "--version" in arguments:
        print(VERSION)
        return 0
    root = Path(os.environ["TT_METAL_RUNTIME_ROOT"])
    output = Path(arguments[arguments.index("-o") + 1])
    source = next((each for each in arguments if each.endswith((".cc", ".cpp"))), "")
    name = output.name.split(".")[0]
    output.touch()
    if "-MF" in arguments:
        Path(arguments[arguments.index("-MF") + 1]).write_text(f"{output}: {source}\n")
    firmware = sorted(root.glob(f"tt_metal/pre-compiled/*/{name}/{name}.elf")) if output.suffix == ".elf" else []
    if firmware:
        shutil.copy(firmware[0], output)
    return _parse(arguments, source, root) if source and "kernels" in output.parts else 0


def _parse(arguments: list[str], source: str, root: Path) -> int:
    headers = find_headers()
    assert headers is not None, "ttl_card.py has looked"
    kept = [each for each in arguments if each.startswith(("-I", "-D", "-std="))]
    moved = [each.replace(str(root), str(headers)) for each in [*kept, source]]
    done = subprocess.run(["g++", *host_flags(), *moved], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    with Path(os.environ["TTL_CARD_LOG"]).open("a") as log:
        log.write(f"{errors[0] if errors else 'ok'} {Path(source).name} {Path.cwd().name}\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
