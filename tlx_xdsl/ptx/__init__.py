"""The PTX machine: final PTX, as stock Triton emits it, read and run on numpy (docs/ptx.md).

`reader.py` makes a module of text, `steps.py` and `ops/` say what each instruction does, `flow.py` cuts basic blocks,
`codegen.py` makes Python of them, and `wave.py` runs the threads of CTAs side by side.
"""

from .launch import PtxRun as PtxRun, run_ptx as run_ptx
from .memory.tensor_map import TensorMap as TensorMap
from .read.faults import (
    PtxBudget as PtxBudget,
    PtxDeadlock as PtxDeadlock,
    PtxError as PtxError,
    PtxFault as PtxFault,
    PtxRace as PtxRace,
)
