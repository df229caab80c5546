"""The names by which the decompiler plugs into the compiler."""

from tlx_xdsl.wings import Wing

WING = Wing(
    passes={"tlx-print-ttgir-to-tlx": "tlx_xdsl.decompile.print_ttgir_to_tlx"},
    commands={"reverse": ("tlx_xdsl.decompile.tools.command", "write IR as the Python of a kernel")},
)
