"""The memory that each program touches: from program ids to addresses (docs/program-addresses.md)."""

from .analysis import analyse_program_addresses
from .model import (
    Access,
    AccessKind,
    Classification,
    Condition,
    DescriptorFacts,
    Dimension,
    Guard,
    LaunchFacts,
    LoopTerm,
    ProgramAddresses,
    TensorBounds,
)

__all__ = [
    "Access",
    "AccessKind",
    "Classification",
    "Condition",
    "DescriptorFacts",
    "Dimension",
    "Guard",
    "LaunchFacts",
    "LoopTerm",
    "ProgramAddresses",
    "TensorBounds",
    "analyse_program_addresses",
]
