"""Instructions of the machine that ptxas makes of each one of PTX, on the average: estimates for want of a cubin.

The counts are means over the kernels of this project at sm_90a, by ptxas 13.4: of an addition a part is folded into
addresses or into the next addition, and a product and an addition of 64 bits become one instruction. Instructions of
the machine are those that use the same pipe; a `U...` is computed once for a warp.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tlx_xdsl.ptx.read.syntax import Instruction, Number, Symbol, Vector

Expansion = tuple[tuple[str, float], ...]
"""Instructions of the machine, by operation code, with how many of each; the last one makes the result."""

_TMA = "R2UR 3 UMOV 2.5 IMAD 2 UIADD3 1.8 VOTEU 1 IADD3 1 UTMALDG 1"
_DIVISION = "IABS 2 I2F 1 MUFU 1 F2I 1 IMAD 6.5 ISETP 4 LOP3 2 R2UR 1.5 IADD3 6"
_WIDE_DIVISION = "MUFU 1 I2F 1 F2I 1 IMAD 40 ISETP 12 IADD3 30"
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_FLOATS = ("f16", "bf16", "f32", "f64", "tf32")
RULES: Mapping[str, str] = {
    # Moves: registers are renamed, parts of registers are read in place.
    "mov": "", "cvta": "", "ld.param": "", "ld.const": "LDC 1", "prmt": "PRMT 1", "mapa": "PRMT 1",
    "isspacep": "ISETP 1", "createpolicy": "MOV 2", "getctarank": "SHF 1",
    # Integers.
    "add": "IADD3 0.9", "sub": "IADD3 1", "addc": "IADD3 1", "subc": "IADD3 1", "neg": "IADD3 0.5", "abs": "IABS 1",
    "add.s64": "IADD3 1.1", "add.u64": "IADD3 1.1", "sub.s64": "IADD3 2", "sub.u64": "IADD3 2",
    "mul": "IMAD 0.7", "mul.wide": "IMAD.WIDE 0.5", "mul.hi": "IMAD.HI 1.2", "mul.s64": "IMAD 3.5",
    "mul.u64": "IMAD 3.5",
    "mad": "IMAD 1.1", "mad.wide": "IMAD.WIDE 1.6", "mad.s64": "IMAD 3.7", "mad.u64": "IMAD 3.7", "madc": "IMAD 1",
    "div": _DIVISION, "rem": _DIVISION, "div.s64": _WIDE_DIVISION, "div.u64": _WIDE_DIVISION,
    "rem.s64": _WIDE_DIVISION, "rem.u64": _WIDE_DIVISION,
    "min": "VIMNMX 1.4", "max": "VIMNMX 1.4", "min.s64": "ISETP 2 SEL 2", "max.s64": "ISETP 2 SEL 2", "sad": "IADD3 2",
    "min.u64": "ISETP 2 SEL 2", "max.u64": "ISETP 2 SEL 2", "dp4a": "IDP 1", "dp2a": "IDP 1",
    # Logic.
    "and": "LOP3 0.75", "or": "LOP3 0.9", "xor": "LOP3 1", "not": "LOP3 0.7", "lop3": "LOP3 1", "and.pred": "",
    "or.pred": "", "xor.pred": "PLOP3 1", "not.pred": "", "and.b64": "LOP3 1", "or.b64": "LOP3 0.05",
    "xor.b64": "LOP3 2",
    "shl": "SHF 0.5", "shr": "SHF 0.85", "shr.u32": "SHF 0.6", "shl.b64": "SHF 0.6", "shr.u64": "SHF 1.5",
    "shr.s64": "SHF 1.5", "shf": "SHF 1", "bfe": "SHF 1 SGXT 1", "bfi": "SHF 1 LOP3 1", "brev": "BREV 1",
    "clz": "FLO 1 IADD3 1",
    "bfind": "FLO 1", "popc": "POPC 1", "fns": "POPC 4 LOP3 20", "bmsk": "BMSK 1", "szext": "SGXT 1",
    # Comparisons.
    "setp": "ISETP 1", "setp.s64": "ISETP 2", "setp.u64": "ISETP 2", "setp.b64": "ISETP 2", "setp.f32": "FSETP 1",
    "setp.f16": "HSETP2 1", "setp.f16x2": "HSETP2 1", "setp.bf16": "HSETP2 1", "setp.f64": "DSETP 1",
    "set": "ISETP 1 SEL 1",
    "selp": "SEL 0.95", "selp.b64": "SEL 2", "selp.f64": "SEL 2", "selp.pred": "PLOP3 1", "selp.b16": "SEL 0.5",
    "slct": "ISETP 1 SEL 1", "testp": "FSETP 1",
    # Floating point.
    "add.f32": "FADD 1", "sub.f32": "FADD 1", "mul.f32": "FMUL 1", "fma": "FFMA 1", "neg.f32": "",
    "abs.f32": "FADD 0.3",
    "min.f32": "FMNMX 1", "max.f32": "FMNMX 1", "copysign": "LOP3 1",
    **{f"{name}.{kind}": f"{made} 1" for kind in _HALVES
       for name, made in (("add", "HADD2"), ("sub", "HADD2"), ("mul", "HMUL2"), ("fma", "HFMA2"), ("min", "HMNMX2"),
                          ("max", "HMNMX2"))},
    **{f"{name}.{kind}": "HMUL2 0.5" for name in ("neg", "abs") for kind in _HALVES},
    "add.f64": "DADD 1", "sub.f64": "DADD 1", "mul.f64": "DMUL 1", "fma.f64": "DFMA 1", "min.f64": "DMNMX 1",
    "max.f64": "DMNMX 1", "neg.f64": "", "abs.f64": "", "div.f64": "MUFU 1 DFMA 9", "sqrt.f64": "MUFU 1 DFMA 9",
    "rcp.f64": "MUFU 1 DFMA 6",
    "div.full": "FSETP 0.4 FSEL 1 MUFU 1 FMUL 3.2", "div.approx": "MUFU 1 FMUL 1",
    "div.rn": "MUFU 1 FCHK 1 BRA 1 FFMA 6",
    "rcp": "MUFU 1 FFMA 2 BRA 1 IADD3 2", "rcp.approx": "FSETP 1 FMUL 2 MUFU 1", "rcp.approx.ftz": "MUFU 1",
    "rsqrt": "FSETP 1 FMUL 2 MUFU 1", "rsqrt.approx.ftz": "MUFU 1", "sqrt": "MUFU 1 FFMA 4 BRA 1 IADD3 2",
    "sqrt.approx": "FMUL 2 FSETP 1 MUFU 1",
    "sqrt.approx.ftz": "MUFU 2", "ex2": "FSETP 1 FMUL 2 MUFU 1", "ex2.ftz": "MUFU 1", "ex2.f16x2": "PRMT 1 MUFU 2",
    "ex2.bf16x2": "PRMT 1 MUFU 2",
    "lg2": "FSETP 1 FMUL 1 FSEL 1 FADD 1 MUFU 1", "lg2.ftz": "MUFU 1", "sin": "FMUL 1 MUFU 1", "cos": "FMUL 1 MUFU 1",
    "tanh": "MUFU 1", "tanh.f16x2": "PRMT 1 MUFU 2", "tanh.bf16x2": "PRMT 1 MUFU 2",
    # Conversions.
    "cvt": "PRMT 0.5",
    # Warps.
    "shfl": "SHFL 1", "vote": "VOTE 1", "match": "MATCH 1", "redux": "REDUX 1", "activemask": "VOTE 1",
    "elect": "ISETP 0.4 ELECT 1", "movmatrix": "MOVM 1",
    # Control.
    "bra": "BRA 1", "brx": "LDC 1 BRX 1", "ret": "EXIT 1", "exit": "EXIT 1", "trap": "BPT 1", "call": "CALL 1 MOV 2",
    "setmaxnreg": "PLOP3 1 BRA 1 USETMAXREG 1", "nanosleep": "NANOSLEEP 1", "griddepcontrol": "ACQBULK 1",
    "pmevent": "", "brkpt": "BPT 1",
    # Memory and barriers.
    "ld": "LDG 1.3", "ld.shared": "LDS 1.1", "ldu": "LDG 1", "st": "STG 1.3", "st.shared": "STS 1.1",
    "st.async": "STS 2",
    "ldmatrix": "LDSM 1", "stmatrix": "STSM 1", "atom": "ATOMG 1.5", "red": "REDG 1.5", "prefetch": "CCTL 1",
    "prefetchu": "CCTL 1", "discard": "CCTL 1", "applypriority": "CCTL 1",
    "fence": "MEMBAR 1 FENCE 1", "membar": "MEMBAR 1", "bar": "BAR 1.1", "barrier": "BAR 1.1",
    "barrier.cluster": "UCGABAR_ARV 1",
    "mbarrier": "SYNCS 1", "mbarrier.init": "USHF 2 VOTEU 1 UIADD3 1 SYNCS 1.4",
    "mbarrier.expect_tx": "IMAD 0.9 SYNCS 1",
    "cp": "IADD3 0.5 LDGSTS 1", "cp.commit_group": "LDGDEPBAR 1", "cp.wait_group": "DEPBAR 1",
    "cp.wait_all": "DEPBAR 1",
    "cp.bulk": _TMA, "cp.bulk.commit_group": "UTMACMDFLUSH 1.1", "cp.bulk.wait_group": "DEPBAR 1",
    "tensormap": "SYNCS 2", "clusterlaunchcontrol": "UMOV 2 SYNCS 1",
    # Tensor cores.
    "mma": "HMMA 1", "mma.m16n8k8": "HMMA.1688 1", "mma.m16n8k8.tf32": "HMMA 1", "wgmma": "WARPGROUP 1",
    "wgmma.mma_async": "UMOV 1.8 R2UR 0.2 HGMMA 1", "wgmma.commit_group": "",
    "wmma": "HMMA 2", "tcgen05": "UTCBAR 1", "tcgen05.mma": "UMOV 4 R2UR 2 UTCHMMA 1", "tcgen05.ld": "LDTM 1",
    "tcgen05.st": "STTM 1",
    "tcgen05.cp": "UMOV 2 UTCCP 1", "tcgen05.wait": "DEPBAR 1", "tcgen05.commit": "UMOV 2 UTCBAR 1",
}  # fmt: skip
"""By the first part of the operation code and any others, the longest that fits; empty where nothing is left of it."""

OF_CONSTANT: Expansion = (("CS2R", 0.5),)
"""A move of a constant: of two, as accumulators begin with zeros."""
_UNKNOWN: Expansion = (("MOV", 1.0),)


def expansion_of(instruction: Instruction) -> Expansion:
    """Return the instructions of the machine that one of PTX becomes; of one that is not known, a single plain one."""
    if instruction.name == "mov":
        return _move(instruction)
    return _by_opcode(instruction.opcode)


def is_known(instruction: Instruction) -> bool:
    """Say whether there is an estimate of an instruction of PTX."""
    return expansion_of(instruction) is not _UNKNOWN


@cache
def _by_opcode(opcode: str) -> Expansion:
    name, *parts = opcode.split(".")
    if name == "cvt":
        return _read(_conversion(parts))
    best: str | None = None
    for key in _KEYS.get(name, ()):
        if all(part in parts or any(each.startswith(f"{part}:") for each in parts) for part in key.split(".")[1:]) and (
            best is None or key.count(".") > best.count(".")
        ):
            best = key
    return _UNKNOWN if best is None else _read(RULES[best])


def _conversion(parts: list[str]) -> str:
    """Return what a conversion becomes; the operation code ends with the types of the result and of the operand."""
    to, of = parts[-2:]
    if to.endswith(("x2", "x4")) or of.endswith(("x2", "x4")):
        return "F2FP.E4M3.F32.PACK 1" if to.startswith(("e4m3", "e5m2")) and of == "f32" else "F2FP 1"
    if of in _FLOATS or to in _FLOATS:
        return _of_floats(to, of)
    if (to, of) == ("s64", "s32"):
        return "SHF 1"
    return "PRMT 0.4" if "8" in to + of or "16" in to else ""


def _of_floats(to: str, of: str) -> str:
    """Return what a conversion of single numbers becomes, of which one at least is a floating-point number."""
    if of not in _FLOATS:
        return "I2FP 1" if to == "f32" and of in ("s32", "u32") else "I2F 1"
    if to not in _FLOATS:
        return "F2I 1"
    if of == "f16":
        return "HADD2.F32 1" if to == "f32" else "F2F 1"
    if of == "bf16":
        return "IMAD 0.8" if to == "f32" else "F2F 1"
    # Two of them are packed at once.
    return "F2FP 0.5" if of == "f32" and "16" in to else "F2F 1"


@cache
def _read(text: str) -> Expansion:
    words = text.split()
    return tuple((name, float(count)) for name, count in zip(words[::2], words[1::2], strict=True))


def _move(instruction: Instruction) -> Expansion:
    """A move of a register costs nothing; of a constant, half of a pair; of a special register, one."""
    source = instruction.operands[1]
    if isinstance(source, Symbol) and source.name.startswith("%"):
        return (("S2R", 1.0),)
    if isinstance(source, Number):
        return OF_CONSTANT
    if isinstance(source, Vector) and not isinstance(instruction.operands[0], Vector):
        return (("PRMT", 0.1),)
    return ()


_KEYS: Mapping[str, tuple[str, ...]] = {
    name: tuple(key for key in RULES if key.partition(".")[0] == name)
    for name in {key.partition(".")[0] for key in RULES}
}
