"""Instructions of a cubin: what `nvdisasm` prints, with the bits that schedule each instruction.

    /*2090*/  @P0 UIADD3 UR6, UP0, UR6, 0x40, URZ ;        /* 0x00000040060678909 */
                                                           /* 0x000fe2000ff1e03f */

The 128 bits of an instruction end with what the hardware waits for (since Volta; Jia et al., "Dissecting the NVIDIA
Volta GPU Architecture via Microbenchmarking", 2018, section 2.1): from bit 105 on 4 bits of cycles, one to yield, the
scoreboard that the instruction releases when its results are written, the one when its operands are read, each 7 for
none, and a mask of 6 scoreboards that it waits for.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from tlx_xdsl.backend.toolchain import installed_package
from tlx_xdsl.errors import CompilationError

_LINE = re.compile(
    r"\s*/\*(?P<at>[0-9a-f]{4,})\*/\s+(?:@(?P<not>!?)(?P<guard>U?P\w+)\s+)?(?P<opcode>[A-Z]\S*?)"
    r"(?:\s+(?P<operands>[^;]*?))?\s*;\s*(?:/\* 0x(?P<low>[0-9a-f]{16}) \*/)?"
)
_HIGH = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_PLACE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_LABEL = re.compile(r"([.$\w]+):\s*$")
_NONE = 7
"""A scoreboard that is none."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of the machine, as its disassembly shows it."""

    address: int
    """Bytes from the begin of its function."""
    opcode: str
    operands: tuple[str, ...] = ()
    guard: str | None = None
    negated: bool = False
    control: int | None = None
    """The bits that schedule it, where the encoding was printed."""
    place: tuple[str, int] | None = None
    """The file and the line of Python that it is of, where the cubin says so."""

    @property
    def name(self) -> str:
        """The first part of the operation code, such as `IADD3`."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The other parts of the operation code."""
        return tuple(self.opcode.split(".")[1:])

    @property
    def releases(self) -> tuple[int | None, int | None]:
        """The scoreboards that it releases when its results are written, and when its operands are read."""
        bits = _NONE | _NONE << 3 if self.control is None else self.control >> 5
        written, read = bits & 7, bits >> 3 & 7
        return (None if written == _NONE else written, None if read == _NONE else read)

    @property
    def waits(self) -> int:
        """The mask of scoreboards that it waits for."""
        return 0 if self.control is None else self.control >> 11 & 0x3F

    def __str__(self) -> str:
        """The text of the disassembly: `/*2090*/ @P0 UIADD3 UR6, UP0, UR6, 0x40, URZ`."""
        guard = f"@{'!' * self.negated}{self.guard} " if self.guard else ""
        return f"/*{self.address:04x}*/ {guard}{self.opcode} {', '.join(self.operands)}".rstrip()


@dataclass(slots=True)
class Code:
    """The machine code of a kernel."""

    name: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    """The address that a label stands for."""
    constants: bytes = b""
    """The constants of the compiler, bank 2: tables of branches."""


def find_nvdisasm() -> Path | None:
    """The disassembler in the installed Triton, or None."""
    package = installed_package()
    found = None if package is None else package / "backends" / "nvidia" / "bin" / "nvdisasm"
    return found if found is not None and found.exists() else None


def disassemble(cubin: bytes, nvdisasm: Path) -> dict[str, Code]:
    """The code of each function of a cubin, by name.

    Raises CompilationError if `nvdisasm` cannot be run, or refuses the cubin.
    """
    found = parse(disassembly(cubin, nvdisasm))
    for name, data in sections(cubin).items():
        if (code := found.get(name.removeprefix(".nv.constant2."))) is not None:
            code.constants = data
    return found


def disassembly(cubin: bytes, nvdisasm: Path, *, lines_of_ptx: bool = False) -> str:
    """The text of a cubin's disassembly, with the lines of its source, or with those of its PTX.

    Raises CompilationError if `nvdisasm` cannot be run, or refuses the cubin.
    """
    lines = "--print-line-info-ptx" if lines_of_ptx else "--print-line-info"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [nvdisasm, "--print-code", "--no-dataflow", lines, "--print-instruction-encoding", path]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CompilationError(f"cannot run '{nvdisasm}': {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0].replace(str(path), "the cubin")
        raise CompilationError(f"nvdisasm refused the cubin: {said or f'exit status {done.returncode}'}")
    return done.stdout


def parse(text: str) -> dict[str, Code]:
    """The code of each function that a disassembly shows, by name."""
    found: dict[str, Code] = {}
    code = Code("")
    waiting: list[str] = []
    place: tuple[str, int] | None = None
    for line in text.split("\n"):
        if (match := _LINE.match(line)) is not None:
            made = _instruction(match, place)
            code.labels.update(dict.fromkeys(waiting, made.address))
            waiting.clear()
            code.instructions.append(made)
        elif (match := _HIGH.match(line)) is not None and code.instructions:
            last = code.instructions[-1]
            control = int(match[1], 16) >> 41
            code.instructions[-1] = replace(last, control=control)
        elif (match := _SECTION.match(line)) is not None:
            code = found.setdefault(match[1], Code(match[1]))
            waiting.clear()
            place = None
        elif (match := _PLACE.match(line)) is not None:
            place = match[1], int(match[2])
        elif (match := _LABEL.match(line)) is not None:
            waiting.append(match[1])
    return found


def _instruction(match: re.Match[str], place: tuple[str, int] | None) -> Instruction:
    guard = match["guard"] if match["not"] or match["guard"] not in ("PT", "UPT") else None
    operands = _operands(match["operands"] or "")
    return Instruction(int(match["at"], 16), match["opcode"], operands, guard, bool(match["not"]), place=place)


def _operands(text: str) -> tuple[str, ...]:
    """Split at commas outside of brackets."""
    parts = re.split(r",\s*(?![^\[(]*[\])])", text.partition(" (*")[0].replace(".reuse", "").strip())
    return tuple(part.strip() for part in parts if part.strip())


def sections(cubin: bytes) -> dict[str, bytes]:
    """The sections of an ELF file of 64 bits, by name; none for other bytes (System V ABI, "Section Header")."""
    if cubin[:5] != b"\x7fELF\x02" or len(cubin) < 64:
        return {}
    start, size, count, names = struct.unpack_from("<Q", cubin, 40) + struct.unpack_from("<HHH", cubin, 58)
    if start + size * count > len(cubin) or names >= count:
        return {}
    headers = [struct.unpack_from("<IIQQQQ", cubin, start + size * number) for number in range(count)]
    texts = cubin[headers[names][4] :]
    return {
        texts[name : texts.index(b"\0", name)].decode(errors="replace"): cubin[offset : offset + length]
        for name, _, _, _, offset, length in headers
    }
