"""Modules that no Triton can compile, each with the place that its error must name.

A place is `user.py:LINE:COLUMN` where the operation at fault has a `loc`, else a fragment of the line of the text.
"""

import re
from dataclasses import dataclass

from backend_kernels import (
    ABORTING,
    SHARED_TOO_LARGE,
    TMEM_TOO_LARGE,
    VECTOR_ADD,
    inline_asm,
    tma_copy,
)

from tlx_xdsl.backend import BackendOptions

HOPPER = BackendOptions(target="sm_90a")
BLACKWELL = BackendOptions(target="sm_100a")


@dataclass(frozen=True)
class Malformed:
    """A module that must be refused, with a pattern of the message and the place."""

    name: str
    text: str
    message: str
    place: str
    options: BackendOptions = HOPPER


def with_block(parameters: str) -> str:
    """The vector addition with other parameters of its layout."""
    return re.sub(r"^#block = .*$", f"#block = #ttg.blocked<{{{parameters}}}>", VECTOR_ADD, flags=re.MULTILINE)


def with_line(line: str, before: str = "%index = tt", text: str = VECTOR_ADD) -> str:
    """A module with one more line."""
    return text.replace(before, f"{line}\n    {before}", 1)


def _with_bare_dot_in_task() -> str:
    operand = "!ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>"
    lines = (
        "%bare = arith.constant dense<0.0> : tensor<64x64xf32>",
        "%on = arith.constant true",
        f"%dot = ttng.warp_group_dot %b, %b, %bare, %on {{inputPrecision = 0 : i32}} : "
        f"{operand} * {operand} -> tensor<64x64xf32>",
    )
    return with_line("\n      ".join(lines), "%origin =", tma_copy())


def _without_line(fragment: str) -> str:
    return "".join(line for line in VECTOR_ADD.splitlines(keepends=True) if fragment not in line)


_BARE = """\
%bare = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32> loc("user.py":9:1)
    %sum0 = "tt.reduce"(%bare) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      tt.reduce.return %a : i32
    }) : (tensor<128xi32>) -> i32 loc("user.py":10:1)
    %many = tt.splat %sum0 : i32 -> tensor<128xi32, #block>
    %there = tt.splat %x : !tt.ptr<f32> -> !pointers
    %at = tt.addptr %there, %many : !pointers, tensor<128xi32, #block>
    %old = tt.load %at : !pointers
    tt.store %at, %old : !pointers"""

_LEFTOVER = """\
%number = builtin.unrealized_conversion_cast %x : !tt.ptr<f32> to i32 loc("user.py":8:1)
    tt.print "x" {hex = false, isSigned = array<i32: 0>} : %number : i32 loc("user.py":9:9)"""

_USER_CALL = 'loc(callsite("helper.py":3:4 at callsite("middle.py":5:6 at "user.py":5:1)))'

PARSED = (
    Malformed("no module", "", "no public function", "<first line>"),
    Malformed("no MLIR", "hello world", "custom op 'hello' is unknown", "hello world"),
    Malformed("half of a surrogate pair", "module {\n \ud800 }", "the text is not Unicode", "\ud800"),
    Malformed("nested too deeply", "(" * 100_000, "expected operation name", "((("),
    Malformed("syntax", VECTOR_ADD.replace("%vx, %vy", "%vx,"), "expected SSA operand", "%sum ="),
    Malformed("unknown op", with_line("%z = tt.fly %x : i32"), "custom op 'tt.fly' is unknown", "tt.fly"),
    Malformed("unknown dialect", with_line('%z = "foo.bar"() : () -> i32'), "unregistered dialect", "foo.bar"),
    Malformed(
        "unknown attribute", VECTOR_ADD.replace("#ttg.swizzled_shared", "#ttg.nonsense"), "unknown attr", "nonsense"
    ),
    Malformed(
        "rank of a layout",
        with_block("sizePerThread = [1, 1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]"),
        "must all have the same rank",
        "#block = ",
    ),
    Malformed(
        "extent of a layout",
        with_block("sizePerThread = [3], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]"),
        "must be a power of two",
        "#block = ",
    ),
    Malformed(
        "warps of a layout",
        with_block("sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]"),
        "Layout has 8 warps per CTA, but the context requires 4",
        "user.py:2:5",
    ),
    Malformed(
        "tensor memory layout",
        TMEM_TOO_LARGE.replace("blockM = 128", "blockM = 77"),
        "blockM must be 64 or 128",
        "#tmem =",
        BLACKWELL,
    ),
    Malformed(
        "rank of a buffer",
        tma_copy().replace("!operand = !ttg.memdesc<64x64xf16", "!operand = !ttg.memdesc<64xf16"),
        "rank must be equal",
        "!operand =",
    ),
    Malformed("undefined value", VECTOR_ADD.replace("%vx, %vy", "%vx, %vz"), "undeclared SSA value", "%vz"),
    Malformed("second definition", with_line("%px = arith.constant 1 : i32"), "redefinition of SSA value", "%px = tt"),
    Malformed(
        "use before the definition",
        with_line(
            '%px = tt.splat %x : !tt.ptr<f32> -> !pointers loc("user.py":7:5)', "tt.return", _without_line("%px = ")
        ),
        "does not dominate this use",
        "user.py:3:5",
    ),
    Malformed(
        "types of operands",
        VECTOR_ADD.replace("%vx, %vy : tensor<128x", "%vx, %vy : tensor<64x"),
        "expects different type than prior uses",
        "%sum =",
    ),
    Malformed("no terminator", _without_line("tt.return"), "block with no terminator", "user.py:6:5"),
    Malformed("verifier", VECTOR_ADD.replace("end = 128", "end = 100"), "must match size of range", "user.py:2:5"),
    Malformed(
        "verifier, in an inlined function",
        VECTOR_ADD.replace("end = 128", "end = 100").replace('loc("user.py":2:5)', _USER_CALL),
        "must match size of range",
        "helper.py:3:4",
    ),
    Malformed(
        "call of an undefined function",
        with_line('tt.call @undefined() : () -> () loc("user.py":9:9)'),
        "does not reference a valid function",
        "user.py:9:9",
    ),
    Malformed(
        "warps of a task",
        tma_copy().replace("num_warps(1)", "num_warps(3)"),
        "must be a power of 2",
        "ttg.warp_specialize(",
    ),
    Malformed(
        "captures of a task",
        tma_copy().replace("warp_specialize(%source, %buffer, %full)", "warp_specialize(%source, %buffer)"),
        "number of operands and types do not match",
        "ttg.warp_specialize(",
    ),
    Malformed(
        "two kernels",
        with_line("tt.func public @other() {\n    tt.return\n  }", "tt.func public @add"),
        "one public function, but this one has 'other', 'add'",
        "public @add",
    ),
    Malformed(
        "options", VECTOR_ADD, "the module says ttg.num-warps:4", "module attributes", BackendOptions(num_warps=8)
    ),
    Malformed("ABORT in a verifier", ABORTING, "assertion `", "ttng.warp_group_dot"),
    Malformed("ABORT in a verifier, in a task", _with_bare_dot_in_task(), "assertion `", "ttng.warp_group_dot"),
)
"""What stock Triton's parser and verifiers refuse, or die over."""

LOWERED = (
    Malformed("tensor without layout", with_line(_BARE, "%px = tt"), "failed without saying why", "user.py:9:1"),
    Malformed(
        "leftover cast",
        with_line(_LEFTOVER),
        "LLVM Translation failed for operation: builtin.unrealized",
        "public @add",
    ),
    Malformed(
        "unknown intrinsic",
        with_line(f'llvm.call_intrinsic "llvm.bogus"() : () -> () {_USER_CALL}'),
        "could not find LLVM intrinsic",
        "helper.py:3:4",
    ),
    Malformed(
        "ABORT over the operands of assembly",
        inline_asm("mov.b32", "=r,r,r"),
        "number of input constraints does not match",
        "user.py:5:11",
    ),
    Malformed(
        "EXIT over a register constraint",
        inline_asm("mov.b32", "=Q,Q"),
        "allocate output register for constraint 'Q'",
        "user.py:5:11",
    ),
    Malformed(
        "ABORT over what the target lacks",
        with_line('llvm.call_intrinsic "llvm.nvvm.tcgen05.wait.ld"() : () -> () loc("user.py":8:1)'),
        "Cannot select: intrinsic %llvm.nvvm.tcgen05.wait.ld",
        "user.py:8:1",
    ),
    Malformed(
        "ABORT over what the target lacks, without locations",
        tma_copy().replace("cuda:90", "cuda:80"),
        "Cannot select: intrinsic",
        "async_tma_copy_global_to_local",
        BackendOptions(target="sm_80"),
    ),
    Malformed("ptxas", inline_asm("no.such.instruction", "=r,r"), "ptxas: Unknown modifier", "user.py:5:11"),
    Malformed(
        "ptxas, an operand",
        with_line('nvvm.inline_ptx "bar.sync 99, 7;" loc("user.py":8:1)'),
        "ptxas: Barrier number '99' out of range",
        "user.py:8:1",
    ),
    Malformed("shared memory", SHARED_TOO_LARGE, "262144 bytes of shared memory", "%buffers = "),
    Malformed("tensor memory", TMEM_TOO_LARGE, "576 columns of tensor memory", "%buffers = ", BLACKWELL),
    Malformed(
        "threads", tma_copy().replace("num_warps(1)", "num_warps(64)"), "2176 threads in 68 warps", "public @copy"
    ),
)
"""What fails after the parser."""
