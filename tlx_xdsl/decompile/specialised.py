"""Sources of specialised kernels: files that users read, change and compile like any other."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.transforms.warp_specialize.outer_values import use_outer_values

from .host import PlainKernel
from .print_ttgir_to_tlx import python_of
from .telling_names import give_telling_names


def source_of_specialised(
    module: ModuleOp, title: str, plain: PlainKernel | None = None
) -> tuple[str, list[Operation]]:
    """The text of a Python file for a module before `tlx-ws-replicate-tasks`, and the operations that it can't express.

    The frontend makes of it what that pass makes of the module.
    """
    written = module.clone()
    use_outer_values(written)
    give_telling_names(written)
    return python_of(written, title, plain or PlainKernel())
