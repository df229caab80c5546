"""Specialization of a kernel, as a command line and the kernel's file say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.text.profiles import NEUTRAL, parse_version

from .request import Request, constexpr_value


def specialization_of(request: Request) -> Specialization:
    """Return what a kernel is compiled for: as the command line says, and then its file.

    Raises CompilationError for arguments that don't fit the kernel.
    """
    signature: Mapping[str, Any] = request.lists["signature"]
    constexprs: Mapping[str, Any]
    if request.lists["arg"] or request.lists["size"]:
        # Loads numpy.
        from .launches import types_of

        found = types_of(request)
        constexprs, signature = found.constexprs, {**found.signature, **signature}
    else:
        constexprs = {name: constexpr_value(name, text) for name, text in request.lists["constexpr"].items()}
    options, defaults = request.options, request.defaults
    return Specialization(
        {**{k: v for k, v in defaults.signature.items() if k not in constexprs}, **signature},
        {**{k: v for k, v in defaults.constexprs.items() if k not in signature}, **constexprs},
        options["target"],
        options["num_warps"],
        options["num_ctas"],
        tuple(options["cluster"]),
        maxnreg=options["maxnreg"],
        enable_fp_fusion=options["enable_fp_fusion"],
        passes=options["passes"],
    )


def triton_version(asked: str | None, *, needs_backend: bool) -> str:
    """The version whose text is written; a backend stage must be compiled by the version that is installed, if any.

    Raises CompilationError for what is no version, and for one that can't compile what is asked for.
    """
    installed = installed_triton_version()
    if asked is None:
        return installed or NEUTRAL.name
    try:
        version = parse_version(asked)
    except InputError as error:
        raise CompilationError(f"--triton-version: {error}") from error
    if needs_backend and installed is not None and parse_version(installed) != version:
        raise CompilationError(
            f"--triton-version: the text for Triton {asked} can't be compiled by the installed Triton {installed}; "
            "write text only with --emit ttir,ttgir"
        )
    return asked
