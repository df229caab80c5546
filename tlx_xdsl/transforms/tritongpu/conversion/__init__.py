"""What `convert-triton-to-tritongpu` does with each operation, by topic."""

from tlx_xdsl.transforms.tritongpu.conversion import (
    control_flow as control_flow,
)
from tlx_xdsl.transforms.tritongpu.conversion import (
    matrix as matrix,
)
from tlx_xdsl.transforms.tritongpu.conversion import (
    shape as shape,
)
from tlx_xdsl.transforms.tritongpu.conversion import (
    simple as simple,
)
from tlx_xdsl.transforms.tritongpu.conversion import (
    tensor_memory as tensor_memory,
)
