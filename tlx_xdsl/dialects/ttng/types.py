"""Types of `ttng` (TritonNvidiaGPUTypes.td)."""

from __future__ import annotations

from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from ..tt import DescriptorType


@irdl_attr_definition
class TensorDescIm2ColType(DescriptorType):
    """A TMA descriptor that reads an image as the columns of a matrix, for convolutions (PTX ISA, "im2col mode").

    Syntax: `!ttng.tensordesc_im2col<64x64xf16, #shared>`.
    """

    name = "ttng.tensordesc_im2col"

    def verify(self) -> None:
        """Blocks are matrices."""
        if len(self.shape) != 2:
            raise VerifyException(f"a block of im2col mode has two dimensions, found {len(self.shape)}")
