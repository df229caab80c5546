"""TTGIR in the spelling of Meta's Triton: operations that it has and upstream lacks, where ours are PTX.

Scripts and tests for Meta's Triton look for these names in `kernel.asm["ttgir"]`. A rule replaces one operation that
means the same, with its operands; what has no other name stays as it is. Nothing reads the result but people: what was
compiled is the text before, whose counterpart `kernel.asm["handoff"]` is.

Before:
```mlir
nvvm.inline_ptx "fence.acq_rel.gpu;"
```
After:
```mlir
ttng.fence {scope = "gpu"}
```
Source: the operations' names and forms are those of TritonGPUOps.td and TritonNvidiaGPUOps.td of
facebookexperimental/triton, August 2026.
"""

from __future__ import annotations

import re

_PTX = re.compile(
    r'nvvm\.inline_ptx "(?P<ptx>[^"]*)"(?: ro\((?P<values>[^:)]*) : (?P<types>[^)]*)\))?(?: -> (?P<result>\S+))?'
)
"""An operation of PTX, up to its location: its text, the values that it reads and their types, its type."""

_OF_PTX: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (r"^fence\.acq_rel\.(?:gpu|sys);$", 'ttng.fence {{scope = "{scope}"}}'),
        (r"^mbarrier\.arrive\.shared::cta\.b64 _, \[\$0\];$", "ttng.arrive_barrier {0}, 1 {{perThread}} : {t0}"),
        (r"vote\.sync\.ballot\.b32 ", "ttng.vote_ballot_sync {1}, {0} : {t0} -> {result}"),
        (
            r"cp\.async\.bulk\.shared::\w+\.global\.mbarrier",
            "ttg.async_copy_global_to_local {3}, {2} bulk_size {4} barrier {5} {{useBulk = true}} : {t3} -> {t2}",
        ),
        (r"cp\.async\.bulk\.global\.shared::cta", "ttng.async_store {3}, {2}, {4} : {t3}, {t2}"),
        (
            r"cp\.async\.bulk\.shared::cluster\.shared::cta",
            "ttg.async_remote_shmem_copy {3}, {2} barrier {4} : {t3} -> {t2} barrier_ty {t4}",
        ),
        (r"cp\.async\.bulk\.prefetch\.tensor", "ttng.async_tma_prefetch {2}[{from3}] : {t2}"),
        (
            r"cp\.async\.bulk\.tensor\.\dd\.shared::cluster\.global",
            "ttng.async_tma_copy_global_to_local {3}[{from5}] {2}, {4}{eviction} : {t3}, {t4} -> {t2}",
        ),
    )
)
"""A part of the PTX, and the operation that stands for it.

Numbers are operands, `t` before one is its type, and `from` all from that one on. Of what one thread does the first two
operands are those of its predicate.
"""
_EVICTION = re.compile(r"\bL2::(evict_\w+)\.b64")

_OTHERS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (r'tt\.elementwise_inline_asm "mov\.u64 \$0, %clock64;" \{[^}]*\} -> i64', "ttg.clock64 : i64"),
        (
            r'%\S+ = tt\.elementwise_inline_asm "\{[^"]* ?prefetch\.global\.(L[12]) [^"]*" \{[^}]*\} ([^:]*) : '
            r"(.*?) -> tensor<[^>]*>",
            r"ttng.prefetch \1 \2 : \3",
        ),
        (r"nvvm\.read\.ptx\.sreg\.cluster\.ctarank : i32", "nvg.cluster_id"),
        (r"nvvm\.cluster\.arrive \{aligned\}", "ttng.cluster_arrive {relaxed = false}"),
        (r"nvvm\.cluster\.arrive\.relaxed \{aligned\}", "ttng.cluster_arrive {relaxed = true}"),
        (r"nvvm\.cluster\.wait \{aligned\}", "ttng.cluster_wait"),
    )
)
"""Other operations."""


def fork_spelling(ttgir: str) -> str:
    """Return TTGIR with the names of Meta's Triton."""
    for pattern, form in _OTHERS:
        ttgir = pattern.sub(form, ttgir)
    return _PTX.sub(_operation, ttgir)


def _operation(match: re.Match[str]) -> str:
    ptx = match["ptx"]
    form = next((form for pattern, form in _OF_PTX if pattern.search(ptx)), None)
    if form is None:
        return match[0]
    values = [each.strip() for each in (match["values"] or "").split(",")]
    types = {f"t{number}": each.strip() for number, each in enumerate((match["types"] or "").split(","))}
    eviction = found[1] if (found := _EVICTION.search(ptx)) else ""
    rests = {f"from{first}": ", ".join(values[first:]) for first in (3, 5)}
    return form.format(
        *values, scope=ptx[-4:-1], result=match["result"], eviction=eviction and f" evictionPolicy = {eviction}",
        **types, **rests,
    )  # fmt: skip
