"""The cluster kernels that can be lowered, and what they are compiled for."""

from collections.abc import Mapping
from typing import Any

from tests.gallery.synchronisation.cluster_runs import CASES
from tests.gallery.synchronisation.example_runs import Case
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.runtime.driver.host_values import signature_of

HOPPER = tuple(name for name in CASES if name.startswith(("multicast", "square", "ring", "layer-norm", "hand-over")))
"""Those for sm_90a."""
PAIRS = ("pair", "pair-long", "two-pairs", "pair-persistent")
"""Those for sm_100a, with products of pairs of CTAs."""


def bound(case: Case) -> dict[str, Any]:
    """The arguments of a case by name, in the order of the kernel's parameters."""
    names = [each.name for each in case.kernel.source.parameters]
    return dict(zip(names, case.arguments, strict=False)) | case.constexprs


def specialization(case: Case, target: str | None = None) -> Specialization:
    """Return the specialisation that a case's kernel is compiled for."""
    given, signature, constexprs = bound(case), dict[str, Any](), dict[str, Any]()
    for parameter in case.kernel.source.parameters:
        if parameter.name in given:
            value = given[parameter.name]
            if parameter.is_constexpr:
                constexprs[parameter.name] = value
            else:
                signature[parameter.name] = signature_of(parameter.name, value)
    options: Mapping[str, Any] = case.options
    return Specialization(
        signature,
        constexprs,
        target or options["target"],
        options.get("num_warps", 4),
        cluster=tuple(options.get("cluster", (1, 1, 1))),
    )
