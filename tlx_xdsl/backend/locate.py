"""Finding the operation over which stock Triton failed where it does not say.

An assertion in a verifier, or in LLVM, ends the process without naming a place. Yet MLIR goes through a module
in order. So a sentinel, a line that is certain to be refused with an ordinary error, is put before
some operation: if stock still fails as it did, then it never came to the sentinel, and the culprit stands before
it. Bisecting over the operations finds the culprit in a logarithmic number of tries.

Which sentinel depends on what goes in order:

- reading text: a line that is no MLIR, for assertions in the parsers of types and attributes;
- verifying operations: a cast without results, which the verifier refuses;
- translating to LLVM IR: a call of an intrinsic that does not exist.

Other failures name what they dislike, though not where: an intrinsic that the target lacks, a register constraint
of inline assembly, a tensor that no layout was given. What remains is placed at the kernel itself, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

from tlx_xdsl.errors import SourceLocation

from .module_text import ModuleText, Statement

Fails = Callable[[str], bool]
"""Returns whether stock Triton fails over a text in the way that is being looked into."""

_NO_MLIR = "?"
_NO_OPERATION = '"builtin.unrealized_conversion_cast"() : () -> ()'
_NO_INTRINSIC = 'llvm.call_intrinsic "llvm.tlx.sentinel"() : () -> ()'

_INTRINSIC = re.compile(r"\bintrinsic %(?P<name>llvm\.[\w.]+)")
_DEBUG_LOCATION = re.compile(r"!DILocation\(line: (?P<line>\d+)(?:, column: (?P<column>\d+))?, scope: (?P<scope>!\d+)")
_DEBUG_FILE = re.compile(r'!DIFile\(filename: "(?P<name>[^"]*)", directory: "(?P<directory>[^"]*)"')
_CONSTRAINT = re.compile(r"constraint '(?P<constraint>[^']*)'")
_CONSTRAINTS = re.compile(r'"(?P<list>[=&~*]*[^"\s,]+(?:,[^"\s,]+)*)"')
_TENSOR = re.compile(r"(?<!\w)tensor<[^<>]*(?:<[^<>]*>[^<>]*)*>")


def find_culprit(module: ModuleText, stage: str, message: str, fails: Fails, *, died: bool) -> Statement | None:
    """Return the operation over which a compile without a located error failed; None if it can't be found.

    `stage` and `message` are those of the failure; `died` says whether it ended the process.
    """
    if died and stage == "parse":
        return _bisect_text(module, fails) or _bisect_groups(module, _NO_OPERATION, fails)
    if match := _CONSTRAINT.search(message):
        return _with_constraint(module, match["constraint"])
    if died and stage in ("llir", "ptx"):
        return _bisect_groups(module, _NO_INTRINSIC, fails)
    if stage not in ("passes", "llir"):
        return None
    return next((operation for operation in module.operations() if _has_bare_tensor(module, operation)), None)


SPECIALIZING = "NVGPUWarpSpecialization"
"""Stock Triton's pass that divides loops with `warp_specialize=True` among warps, where the GPU is Hopper."""


def specialized_loop(module: ModuleText) -> SourceLocation | None:
    """Return the place of the first loop with `warp_specialize=True`."""
    ends = (module.end_of(each) for each in module.operations() if each.name == "scf.for")
    return next((module.place_of_end(end) for end in ends if "tt.warp_specialize" in end), None)


def hints(module: ModuleText, culprit: Statement) -> tuple[str, ...]:
    """The message for an operation over which stock failed with an unhelpful text."""
    return ("a tensor of this operation has no layout",) if _has_bare_tensor(module, culprit) else ()


def intrinsic_of(message: str) -> str | None:
    """Return the LLVM intrinsic that a failure names as what the target can't do."""
    match = _INTRINSIC.search(message)
    return match["name"] if match else None


def place_of_call(llir: str, function: str) -> SourceLocation | None:
    """Return the source location of the first call of `function` in LLVM IR text, by its debug information."""
    call = re.search(rf"@{re.escape(function)}\b.*!dbg (!\d+)", llir)
    if call is None:
        return None
    metadata = dict(re.findall(r"^(!\d+) = (.*)$", llir, re.MULTILINE))
    match = _DEBUG_LOCATION.search(metadata.get(call[1], ""))
    # A scope is in a function or names its file itself; 64 is more than anybody nests.
    scope = match["scope"] if match else ""
    for _ in range(64):
        text = metadata.get(scope, "")
        if match and (file := re.search(r"\bfile: (!\d+)", text)):
            name = _DEBUG_FILE.search(metadata.get(file[1], ""))
            if name is None:
                return None
            filename = str(PurePath(name["directory"], name["name"]))
            return SourceLocation(filename, int(match["line"]), int(match["column"] or 0))
        outer = re.search(r"\bscope: (!\d+)", text)
        scope = outer[1] if outer else ""
    return None


def _bisect_text(module: ModuleText, fails: Fails) -> Statement | None:
    """Return the statement at which the reader of the text dies; None if it reads all of it."""
    statements = module.statements
    if not statements or not fails(module.with_line(_NO_MLIR, statements[-1])):
        return None
    return _last_before_failure(module, statements, _NO_MLIR, fails)


def _bisect_groups(module: ModuleText, sentinel: str, fails: Fails) -> Statement | None:
    """Return the operation at which a walk over the module dies, one group of operations after the other."""
    groups: dict[int, list[Statement]] = {}
    for operation in module.operations():
        groups.setdefault(operation.group, []).append(operation)
    # Partitions, which come later, before the function that they stand in.
    for operations in reversed(groups.values()):
        first, last = operations[0], operations[-1]
        # The group with the culprit is the one in which the sentinel's place makes a difference.
        if fails(module.with_line(sentinel, last)) and not fails(module.with_line(sentinel, first)):
            return _last_before_failure(module, operations, sentinel, fails)
    return None


def _last_before_failure(module: ModuleText, statements: Sequence[Statement], sentinel: str, fails: Fails) -> Statement:
    """Return the last statement that a sentinel before it protects, given that one before the last does not."""
    low, high = 0, len(statements) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if fails(module.with_line(sentinel, statements[middle])):
            high = middle
        else:
            low = middle
    return statements[low]


def _with_constraint(module: ModuleText, constraint: str) -> Statement | None:
    """Return the first operation with inline assembly that has a register constraint."""
    wanted = constraint.lstrip("=&")
    for operation in module.operations():
        if "asm" not in operation.name and "inline_ptx" not in operation.name:
            continue
        for match in _CONSTRAINTS.finditer(module.text_of(operation)):
            if wanted in (item.lstrip("=&") for item in match["list"].split(",")):
                return operation
    return None


def _has_bare_tensor(module: ModuleText, operation: Statement) -> bool:
    """Return whether a type that an operation spells out is a tensor without a layout, where others have one."""
    if "#ttg." not in module.text:
        return False
    return any("#" not in tensor for tensor in _TENSOR.findall(module.text_of(operation)))
