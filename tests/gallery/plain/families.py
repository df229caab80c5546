"""All families by name."""

from tests.gallery.plain import (
    attention,
    attention_two_loops,
    attention_window,
    cross_entropy,
    delta_output,
    delta_state,
    gated,
    matmul,
    matmul_batched,
    matmul_descriptors,
    matmul_fp8,
    matmul_fp8_blocks,
    matmul_gathered,
    matmul_gelu,
    matmul_grouped,
    matmul_persistent,
)
from tests.gallery.plain.family import Family

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY
    for module in (
        attention,
        attention_two_loops,
        attention_window,
        cross_entropy,
        delta_output,
        delta_state,
        gated,
        matmul,
        matmul_batched,
        matmul_descriptors,
        matmul_fp8,
        matmul_fp8_blocks,
        matmul_gathered,
        matmul_gelu,
        matmul_grouped,
        matmul_persistent,
    )
}
