"""The pipes of a sub-partition of a multiprocessor, and what each instruction of the machine takes of them.

A multiprocessor has four sub-partitions. Each issues one instruction of a warp in a cycle, and has pipes that take an
instruction of 32 threads in one or more cycles. Instructions are those of the machine (SASS) by the first part of their
operation code, whether a disassembly shows them or `expansions.py` estimates them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

PIPES = ("fma", "heavy", "alu", "xu", "fp64", "lsu", "tensor", "uniform")
"""The pipes of one sub-partition, in the order of `Work.pipes`.

`fma` is both halves of the floating-point pipe together, and `heavy` the half of it that multiplies integers, too.
`lsu` is what shuffles and spilled registers take of the way to memory, the sub-partition's share. `tensor` is what
`mma.sync` takes; products of warp groups are events, and not counted here.
"""
_FMA, _HEAVY, _ALU, _XU, _FP64, _LSU, _TENSOR, _UNIFORM = range(len(PIPES))


@dataclass(frozen=True)
class PipeRates:
    """Cycles that a pipe is taken by one instruction of a warp, and cycles to its result.

    `Guide` is NVIDIA's "CUDA C++ Programming Guide", the table of arithmetic throughput at compute capability 9.0: 32
    threads by a fourth of its results per cycle and multiprocessor. `Luo 2024` is "Benchmarking and Dissecting the
    Nvidia Hopper GPU Architecture via Microbenchmarking" (arXiv 2402.13499). `Measured` is by the microbenchmarks under
    `benchmarks/clock/`, on an H200 in November 2026. `Stalls` are the cycles that ptxas lets pass between an
    instruction and one that takes its result, in the disassembly of the project's kernels.
    """

    fma: float = 1.0
    """FP32: 128 threads. Guide; measured."""
    half: float = 1.5
    """Packed FP16 and BF16. Measured; the Guide has 1."""
    widening: float = 2.0
    """From FP16 to FP32. Measured."""
    heavy: float = 2.0
    """Products of integers, and moves that ptxas writes as such: 64. Guide; measured."""
    heavy_wide: float = 4.0
    """Products of 64 bits. Assumed."""
    alu: float = 2.0
    """Sums, shifts, logic, comparisons, minima, selections, packed conversions: 64. Guide; measured."""
    narrow: float = 2.0
    """Packed conversions to FP8. Measured, with a LOP3 that takes as much."""
    xu: float = 8.0
    """Special functions, population counts, conversions to integers and of 64 bits: 16. Guide; measured."""
    fp64: float = 2.0
    """Double precision: 64. Guide."""
    shuffle: float = 4.0
    """Shuffles: 32. Guide; measured."""
    reduction: float = 8.0
    """`redux`: 16. Guide; measured."""
    local: float = 8.0
    """Loads and stores of registers that ptxas has spilled, while the L1 cache holds them: 2 cycles of the
    multiprocessor. From two products of matrices of which one spills 500 bytes a thread."""
    far_local: float = 44.0
    """As `local`, where they spill over to DRAM. From a product of matrices that spills 3,200 bytes a thread."""
    most_local_bytes: int = 1024
    """The bytes of a thread up to which `local` holds. Assumed."""
    uniform: float = 2.0
    """What is computed once for a warp. Assumed."""
    matrix: float = 4.0
    """`mma.sync` of 16 by 8 by 32 bytes: half of what `wgmma` reaches. Luo 2024 measured 62 % of the peak."""

    arithmetic_latency: float = 4.0
    """Of `fma`, `heavy` and `alu`. Stalls; measured as 4.2."""
    half_latency: float = 8.0
    """Of packed FP16 and BF16. Measured."""
    predicate_latency: float = 13.0
    """Of a comparison, to a branch or a guard. Stalls."""
    uniform_latency: float = 6.0
    """To a register of threads; 4 to another uniform one. Stalls."""
    to_uniform_latency: float = 13.0
    """From a register of threads to a uniform one. Stalls."""
    fp64_latency: float = 8.0
    """Measured."""
    special_latency: float = 17.0
    """Of `xu`, with the wait for the scoreboard. Measured."""
    shuffle_latency: float = 24.0
    """Measured."""
    reduction_latency: float = 44.0
    """Measured."""
    constant_latency: float = 38.0
    """Of `LDC` that the cache has. Assumed; Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
    Microbenchmarking", 2018, have 27 and more on Volta."""
    local_latency: float = 40.0
    """Of a load from the L1 cache. As `l1_latency` of the chip: Luo 2024."""
    system_latency: float = 25.0
    """Of special registers. Assumed."""
    matrix_latency: float = 33.0
    """Luo 2024, table of mma: m16n8k16, sums in fp32."""


class _Class:
    """Instructions that take the same of the pipes: the fields of `PipeRates` by pipe, and the one of the latency."""

    def __init__(self, latency: str, *uses: tuple[int, str, float], is_tracked: bool = False):
        self.latency = latency
        self.uses = uses
        self.is_tracked = is_tracked
        """True if a scoreboard says when its result is there, as ptxas does not know how long it takes."""


_FLOAT = _Class("arithmetic_latency", (_FMA, "fma", 1.0))
_HALF = _Class("half_latency", (_FMA, "half", 1.0))
_WIDENING = _Class("arithmetic_latency", (_FMA, "widening", 0.5), (_HEAVY, "widening", 1.0))
_NARROW = _Class("arithmetic_latency", (_ALU, "narrow", 1.0))
_INTEGER_PRODUCT = _Class("arithmetic_latency", (_FMA, "heavy", 0.5), (_HEAVY, "heavy", 1.0))
_WIDE_PRODUCT = _Class("arithmetic_latency", (_FMA, "heavy_wide", 0.5), (_HEAVY, "heavy_wide", 1.0))
_PLAIN = _Class("arithmetic_latency", (_ALU, "alu", 1.0))
_COMPARE = _Class("predicate_latency", (_ALU, "alu", 1.0))
_SPECIAL = _Class("special_latency", (_XU, "xu", 1.0), is_tracked=True)
_DOUBLE = _Class("fp64_latency", (_FP64, "fp64", 1.0))
_SHUFFLE = _Class("shuffle_latency", (_LSU, "shuffle", 1.0), is_tracked=True)
_REDUCTION = _Class("reduction_latency", (_LSU, "reduction", 1.0), is_tracked=True)
_LOCAL_LOAD = _Class("local_latency", (_LSU, "local", 1.0), is_tracked=True)
_LOCAL_STORE = _Class("arithmetic_latency", (_LSU, "local", 1.0))
_UNIFORMS = _Class("uniform_latency", (_UNIFORM, "uniform", 1.0))
_TO_UNIFORM = _Class("to_uniform_latency", (_ALU, "alu", 1.0))
_VOTE = _Class("to_uniform_latency", (_ALU, "alu", 1.0))
_CONSTANT = _Class("constant_latency", is_tracked=True)
_SYSTEM = _Class("system_latency", is_tracked=True)
_MATRIX = _Class("matrix_latency", (_TENSOR, "matrix", 1.0))
_NOTHING = _Class("arithmetic_latency")
_UNKNOWN = _PLAIN

_BY_CLASS: Mapping[_Class, str] = {
    _FLOAT: "FADD FMUL FFMA FADD2 FMUL2 FFMA2",
    _HALF: "HADD2 HMUL2 HFMA2",
    _INTEGER_PRODUCT: "IMAD IMUL IDP",
    _PLAIN: "IADD3 IADD VIADD LOP3 SHF LEA SEL PRMT FSEL FMNMX FMNMX3 HMNMX2 IMNMX VIMNMX VIMNMX3 VIADDMNMX MOV F2FP "
    "I2FP SGXT BMSK IABS CS2R P2R R2P LOP SHL SHR FSWZADD BREV VABSDIFF FCHK CREDUX",
    _COMPARE: "ISETP FSETP HSETP2 PLOP3 PSETP VOTE",
    _SPECIAL: "MUFU POPC FLO I2F F2I F2F FRND I2I",
    _DOUBLE: "DADD DMUL DFMA DSETP DMNMX",
    _SHUFFLE: "SHFL MATCH MOVM",
    _REDUCTION: "REDUX",
    _LOCAL_LOAD: "LDL",
    _LOCAL_STORE: "STL",
    _UNIFORMS: "UIADD3 UMOV USHF ULEA UISETP UIMAD ULOP3 USEL USGXT UPRMT UPLOP3 UFLO UPOPC UP2UR UVIADD UVIMNMX UBMSK "
    "UBREV UF2FP UFADD UFMUL UFFMA UFSETP UFSEL UIABS UI2FP UR2UP UCLEA",
    _TO_UNIFORM: "R2UR VOTEU",
    _VOTE: "ELECT",
    _CONSTANT: "LDC ULDC LDCU",
    _SYSTEM: "S2R S2UR USETMAXREG",
    _MATRIX: "HMMA IMMA QMMA DMMA BMMA",
    _NOTHING: "BRA BRX BRXU EXIT RET CALL JMP NOP BSSY BSYNC BREAK BMOV WARPSYNC YIELD BPT WARPGROUP WARPGROUPSET "
    "ENDCOLLECTIVE RPCMOV NANOSLEEP PMTRIG ACQBULK PREEXIT CCTL ERRBAR CGAERRBAR KILL",
}
_EVENTS = (
    "LDG STG LDS STS LD ST LDSM STSM ATOM ATOMG ATOMS RED REDG REDS SYNCS BAR HGMMA QGMMA IGMMA BGMMA LDGSTS "
    "LDGDEPBAR DEPBAR UTMALDG UTMASTG UTMAREDG UTMAPF UTMACMDFLUSH UTMACCTL UBLKCP UBLKRED UBLKPF UCGABAR_ARV "
    "UCGABAR_WAIT MEMBAR FENCE LDTM STTM UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCBAR UTCCP UTCSHIFT UTCATOMSWS "
    "ARRIVES CS2UR NANOSLEEP WARPGROUP CCTL"
)
"""What makes an event of the trace, or takes its time in the model of a unit. They take an issue slot, and no pipe."""
_EVENT_NAMES = frozenset(_EVENTS.split())
_CLASSES: Mapping[str, _Class] = {
    **{name: each for each, names in _BY_CLASS.items() for name in names.split()},
    **dict.fromkeys(_EVENTS.split(), _NOTHING),
}


@dataclass(frozen=True, slots=True)
class Use:
    """The share that one instruction of the machine takes of its sub-partition."""

    pipes: tuple[tuple[int, float], ...]
    """Places in `PIPES`, with the cycles for which each is taken."""
    latency: float
    """Cycles to its result; for a comparison, to a guard or a branch."""
    plain_latency: float
    """Cycles to the use of its result in other places."""
    is_tracked: bool
    """True if what takes the result waits for a scoreboard, not for a number of cycles that is known to ptxas."""
    is_event: bool
    """True if it is the model of a unit, not its pipe, that takes its time."""
    is_known: bool


@cache
def use_of(opcode: str, rates: PipeRates) -> Use:
    """Return what an instruction takes, by its operation code with modifiers, such as `MUFU.EX2`.

    One that is not known counts as plain arithmetic on integers.
    """
    name, _, rest = opcode.partition(".")
    found = _CLASSES.get(name)
    made = _UNKNOWN if found is None else found
    if name == "IMAD" and rest.startswith(("WIDE", "HI")):
        made = _WIDE_PRODUCT
    elif name == "HADD2" and rest.startswith("F32"):
        made = _WIDENING
    elif name == "F2FP" and ".F32." in rest and ("E4M3" in rest or "E5M2" in rest):
        made = _NARROW
    times = _matrix_size(rest) if made is _MATRIX else 1.0
    pipes = tuple((pipe, getattr(rates, field) * part * times) for pipe, field, part in made.uses)
    latency: float = getattr(rates, made.latency)
    plain = rates.arithmetic_latency if made is _COMPARE else latency
    return Use(pipes, latency, plain, made.is_tracked, name in _EVENT_NAMES, found is not None)


def _matrix_size(modifiers: str) -> float:
    """The products of `HMMA.16816.F32`, with that of 16 by 8 by 32 bytes as 1."""
    return {"1688": 0.5, "16816": 1.0, "16832": 1.0, "16864": 1.0, "884": 0.5}.get(modifiers.partition(".")[0], 1.0)


def unknown_in(opcodes: Sequence[str], rates: PipeRates) -> Counter[str]:
    """Return the instructions that are not known, with how often each is there."""
    return Counter(each.partition(".")[0] for each in opcodes if not use_of(each, rates).is_known)
