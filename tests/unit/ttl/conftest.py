"""Keeping of the C++ that tests of TTL print, where `TTL_RECORD_CPP` names a folder for it (`make ttl-headers`)."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.ttl.runtime import compilation

_FOLDER = os.environ.get("TTL_RECORD_CPP")
_OLD = "2025-12"
_compile = compilation.compile_module


def _recording(
    module: ModuleOp, options: compilation.Options | None = None, **others: Any
) -> compilation.CompiledKernel:
    compiled = _compile(module, options, **others)
    if options is None or options.profile != _OLD:
        kept = json.dumps({"sources": dict(compiled.sources), "manifest": compiled.manifest}, sort_keys=True, indent=1)
        folder = Path(str(_FOLDER))
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(kept.encode()).hexdigest()[:12]
        (folder / f"{compiled.name}-{digest}.json").write_text(kept)
    return compiled


if _FOLDER is not None:
    compilation.compile_module = _recording
