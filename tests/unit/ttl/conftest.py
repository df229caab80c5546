"""Keeping of the C++ that tests of TTL print, where `TTL_RECORD_CPP` names a folder for it (`make ttl-headers`)."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.ttl.cpp import PROFILES
from tlx_xdsl.ttl.runtime import compilation

_FOLDER = os.environ.get("TTL_RECORD_CPP")
_compile = compilation.compile_module


def _recording(
    module: ModuleOp, options: compilation.Options | None = None, **others: Any
) -> compilation.CompiledKernel:
    chosen = compilation.Options() if options is None else options
    for profile in (name for name, profile in PROFILES.items() if profile.has_startup):
        # The test gets its warnings from its own compilation.
        with collected_diagnostics():
            compiled = _compile(module.clone(), replace(chosen, profile=profile))
        kept = json.dumps({"sources": dict(compiled.sources), "manifest": compiled.manifest}, sort_keys=True, indent=1)
        folder = Path(str(_FOLDER))
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(kept.encode()).hexdigest()[:12]
        (folder / f"{compiled.name}-{profile}-{digest}.json").write_text(kept)
    return _compile(module, options, **others)


if _FOLDER is not None:
    compilation.compile_module = _recording
