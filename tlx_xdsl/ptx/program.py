"""A kernel of PTX, ready to run: steps, blocks, and the code of those blocks that were reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import compute
from .arithmetic.kinds import Kind
from .codegen import BlockFunction, Generator
from .contraction import contract
from .flow import EXIT, Block, blocks_of, is_branch
from .ops import BUILDERS
from .read.faults import PtxError, error_on_line
from .read.inlining import inlined
from .read.symbols import Symbols, place
from .read.syntax import Function, Module
from .registers_in_flight import Misuse, misuses
from .steps import NOTHING, Context, Step

_NOTHING: frozenset[int] = frozenset()


@dataclass(slots=True)
class Program:
    """An entry of a module."""

    module: Module
    function: Function
    symbols: Symbols
    steps: list[Step | None]
    blocks: list[Block]
    generator: Generator
    code: list[BlockFunction | None] = field(default_factory=list["BlockFunction | None"])
    misuses: dict[int, Misuse] = field(default_factory=dict[int, Misuse])
    """Registers that blocks use too early, which are reported when the block runs."""

    def live_in(self, block: int) -> frozenset[int] | set[int]:
        """The registers that may be read from a block on."""
        return _NOTHING if block == EXIT else self.blocks[block].live_in

    @property
    def homes(self) -> list[Kind]:
        """The view in which each register is kept."""
        return self.generator.homes

    def function_of(self, number: int) -> BlockFunction:
        """The code of a block, which is made when it is first reached."""
        found = self.code[number]
        if found is None:
            function = self.function
            number_at = {block.first: block.number for block in self.blocks}
            found = self.code[number] = self.generator.block(
                self.blocks[number], lambda label: number_at.get(function.labels[label], EXIT)
            )
        return found


def entry_of(module: Module, name: str | None) -> Function:
    """The kernel of that name, or the only one.

    Raises PtxError where there is none, or the name is needed.
    """
    entries = [function for function in module.functions.values() if function.is_entry]
    if name is not None:
        found = next((function for function in entries if function.name == name), None)
        if found is None:
            raise PtxError(f"the PTX has no kernel '{name}', only {', '.join(each.name for each in entries) or 'none'}")
        return found
    if len(entries) != 1:
        names = ", ".join(each.name for each in entries)
        raise PtxError(
            f"the PTX has {len(entries)} kernels: say which one ({names})" if entries else "the PTX has no kernel"
        )
    return entries[0]


def prepare(module: Module, name: str | None = None, *, fp_fusion: bool = True) -> Program:
    """Make steps and blocks of a kernel; `fp_fusion` says whether ptxas may contract products with additions.

    Raises PtxError for an instruction that is not known, at its line.
    """
    function = inlined(module, entry_of(module, name))
    if not function.has_body or not function.instructions:
        raise error_on_line(module, function.line, f"the kernel '{function.name}' has no instructions")
    if fp_fusion:
        contract(function)
    symbols = place(module, function)
    steps: list[Step | None] = []
    for instruction in function.instructions:
        if is_branch(instruction) and instruction.name != "trap":
            steps.append(None)
        else:
            steps.append(build_step(Context(module, function, symbols, instruction)))
    blocks = blocks_of(module, function, steps)
    return Program(
        module, function, symbols, steps, blocks, Generator(module, function, symbols, steps), [None] * len(blocks),
        misuses(function, steps, blocks),
    )  # fmt: skip


def build_step(context: Context) -> Step | None:
    """The step of an instruction; None for one that does nothing here.

    Raises PtxError for an instruction that is not known.
    """
    name = context.instruction.name
    if (builder := BUILDERS.get(name)) is not None:
        step = builder(context)
    else:
        step = compute.build(context)
        if step is None:
            raise context.refuse()
    return None if step is NOTHING else step
