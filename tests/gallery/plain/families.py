"""All families by name."""

from tests.gallery.plain import attention, gated, matmul, matmul_descriptors
from tests.gallery.plain.family import Family

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY for module in (matmul, matmul_descriptors, gated, attention)
}
