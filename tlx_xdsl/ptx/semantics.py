"""Meaning of each instruction on this machine, with the section of the PTX ISA that says it.

`python -m tlx_xdsl.ptx.semantics` prints the table of docs/ptx.md.
"""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """A section of the PTX ISA, and how the machine has it."""

    section: str
    here: str


_EXACT = "exact"
_ROUNDED = "every rounding mode, `.ftz`, `.sat`"
_BITS = "an H200's bits"
_HINT = "nothing: a hint"

MEANINGS: dict[str, Meaning] = {
    "abs": Meaning("Integer, Floating Point: abs", _EXACT),
    "activemask": Meaning("Parallel Synchronization: activemask", "the threads that run together"),
    "add": Meaning("Integer, Floating Point: add", f"wraps; {_ROUNDED}; fused with a product where ptxas does"),
    "addc": Meaning("Extended-Precision Integer: addc", "exact; `.cc` of this and others leaves a carry"),
    "and": Meaning("Logic and Shift: and", _EXACT),
    "applypriority": Meaning("Data Movement: applypriority", _HINT),
    "atom": Meaning(
        "Parallel Synchronization: atom",
        "threads in the order of their numbers; orders and scopes count in global memory",
    ),
    "bar": Meaning("Parallel Synchronization: bar", "counts threads; orders"),
    "barrier": Meaning("Parallel Synchronization: barrier, barrier.cluster", "counts threads; orders"),
    "bfe": Meaning("Integer: bfe", _EXACT),
    "bfi": Meaning("Integer: bfi", _EXACT),
    "bra": Meaning("Control Flow: bra", "threads part, and meet at the immediate post-dominator"),
    "brev": Meaning("Integer: brev", _EXACT),
    "brkpt": Meaning("Miscellaneous: brkpt", "ends the run"),
    "brx": Meaning("Control Flow: brx.idx", "as bra"),
    "call": Meaning("Control Flow: call", "functions of the module, `vprintf`, `__assertfail`"),
    "clusterlaunchcontrol": Meaning("Parallel Synchronization: clusterlaunchcontrol", "in the order of clusters"),
    "clz": Meaning("Integer: clz", _EXACT),
    "copysign": Meaning("Floating Point: copysign", _EXACT),
    "cos": Meaning("Floating Point: cos", _BITS),
    "cp": Meaning("Data Movement: cp.async, cp.async.bulk(.tensor)", "at issue; over for others when it is waited for"),
    "createpolicy": Meaning("Data Movement: createpolicy", "an opaque number: a hint"),
    "cvt": Meaning("Data Movement: cvt", "all types to fp8, nearest, towards zero, at random, `.satfinite`, `.relu`"),
    "cvta": Meaning("Data Movement: cvta", "windows of generic addresses"),
    "discard": Meaning("Data Movement: discard", _HINT),
    "div": Meaning("Integer, Floating Point: div", f"exact, rounded to nearest; `.full` and `.approx` {_BITS}"),
    "elect": Meaning("Parallel Synchronization: elect.sync", "the lowest lane"),
    "ex2": Meaning("Floating Point: ex2", _BITS),
    "exit": Meaning("Control Flow: exit", _EXACT),
    "fence": Meaning(
        "Parallel Synchronization: fence", "proxies; what relaxed accesses and arrivals release and acquire"
    ),
    "fma": Meaning("Floating Point: fma", "one rounding to nearest"),
    "getctarank": Meaning("Data Movement: getctarank", _EXACT),
    "griddepcontrol": Meaning("Parallel Synchronization: griddepcontrol", "nothing: launches follow each other"),
    "isspacep": Meaning("Data Movement: isspacep", _EXACT),
    "ld": Meaning("Data Movement: ld", "all state spaces; checked; orders and scopes count in global memory"),
    "ldmatrix": Meaning("Matrix: ldmatrix", "m8n8 of 16 bits"),
    "ldu": Meaning("Data Movement: ldu", "as ld"),
    "lg2": Meaning("Floating Point: lg2", _BITS),
    "lop3": Meaning("Logic and Shift: lop3", _EXACT),
    "mad": Meaning("Integer, Floating Point: mad", _EXACT),
    "madc": Meaning("Extended-Precision Integer: madc", _EXACT),
    "mapa": Meaning("Data Movement: mapa", "the rank in the bits from 24 on"),
    "match": Meaning("Parallel Synchronization: match.sync", _EXACT),
    "max": Meaning("Integer, Floating Point: max", "`.NaN`, `.relu`, `.xorsign.abs`, three operands"),
    "mbarrier": Meaning("Parallel Synchronization: mbarrier", "phases, arrivals, bytes; `try_wait` waits to the end"),
    "membar": Meaning("Parallel Synchronization: membar", "as fence"),
    "min": Meaning("Integer, Floating Point: min", "as max"),
    "mma": Meaning("Matrix: mma.sync", f"m16n8; {_BITS}"),
    "mov": Meaning("Data Movement: mov", "parts of registers, too"),
    "movmatrix": Meaning("Matrix: movmatrix", _EXACT),
    "mul": Meaning("Integer, Floating Point: mul", f"`.lo`, `.hi`, `.wide`; {_ROUNDED}"),
    "nanosleep": Meaning("Miscellaneous: nanosleep", _HINT),
    "neg": Meaning("Integer, Floating Point: neg", _EXACT),
    "not": Meaning("Logic and Shift: not", _EXACT),
    "or": Meaning("Logic and Shift: or", _EXACT),
    "pmevent": Meaning("Miscellaneous: pmevent", _HINT),
    "popc": Meaning("Integer: popc", _EXACT),
    "prefetch": Meaning("Data Movement: prefetch", _HINT),
    "prefetchu": Meaning("Data Movement: prefetchu", _HINT),
    "prmt": Meaning("Data Movement: prmt", "the general mode"),
    "rcp": Meaning("Floating Point: rcp", f"rounded to nearest; `.approx` {_BITS}"),
    "red": Meaning("Parallel Synchronization: red", "as atom"),
    "redux": Meaning("Parallel Synchronization: redux.sync", _EXACT),
    "rem": Meaning("Integer: rem", _EXACT),
    "ret": Meaning("Control Flow: ret", _EXACT),
    "rsqrt": Meaning("Floating Point: rsqrt", _BITS),
    "selp": Meaning("Comparison and Selection: selp", _EXACT),
    "set": Meaning("Comparison and Selection: set", "as setp, in each half of packed types; `.ftz`"),
    "setmaxnreg": Meaning("Miscellaneous: setmaxnreg", "the registers of a CTA, where `.maxnreg` says how many"),
    "setp": Meaning("Comparison and Selection: setp", "ordered and unordered, joined with a predicate"),
    "shf": Meaning("Logic and Shift: shf", _EXACT),
    "shfl": Meaning("Data Movement: shfl.sync", _EXACT),
    "shl": Meaning("Logic and Shift: shl", _EXACT),
    "shr": Meaning("Logic and Shift: shr", _EXACT),
    "sin": Meaning("Floating Point: sin", _BITS),
    "sqrt": Meaning("Floating Point: sqrt", f"rounded to nearest; `.approx` {_BITS}"),
    "st": Meaning("Data Movement: st, st.async", "as ld"),
    "stmatrix": Meaning("Matrix: stmatrix", "m8n8 of 16 bits"),
    "sub": Meaning("Integer, Floating Point: sub", f"wraps; {_ROUNDED}; fused with a product where ptxas does"),
    "subc": Meaning("Extended-Precision Integer: subc", _EXACT),
    "tanh": Meaning("Floating Point: tanh", _BITS),
    "tcgen05": Meaning("TensorCore 5th Generation", "alloc, ld, st, mma with scales, cp, shift, commit, fences, pairs"),
    "tensormap": Meaning("Data Movement: tensormap", "fields of 128 bytes of our own"),
    "testp": Meaning("Floating Point: testp", _EXACT),
    "trap": Meaning("Miscellaneous: trap", "ends the run"),
    "vote": Meaning("Parallel Synchronization: vote.sync", _EXACT),
    "wgmma": Meaning("Asynchronous Warpgroup Level Matrix", f"at issue; {_BITS}; registers and groups are checked"),
    "xor": Meaning("Logic and Shift: xor", _EXACT),
}
"""By the first part of the operation code."""


def table() -> str:
    """The table in Markdown."""
    rows = [f"| `{name}` | {meaning.section} | {meaning.here} |" for name, meaning in sorted(MEANINGS.items())]
    return "\n".join(["| instruction | PTX ISA | here |", "|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
