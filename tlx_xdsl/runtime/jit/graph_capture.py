"""CUDA graphs: what may not happen while torch captures one."""

from __future__ import annotations

import sys


def refuse_while_capturing(kernel: str) -> None:
    """Raise RuntimeError when a stream of torch's is being captured: loading the kernel now would break the capture."""
    torch = sys.modules.get("torch")
    # Only who has torch in his process captures with it.
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_current_stream_capturing():
        return
    raise RuntimeError(
        f"the kernel '{kernel}' is launched for the first time with arguments of these types while a CUDA graph is "
        "captured: the CUDA driver can't load it now. Launch it once before the capture"
    )
