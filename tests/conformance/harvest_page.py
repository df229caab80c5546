"""Write the pages about what Triton versions get wrong, of their table and of the verdicts of harvests.

    python -m tests.conformance.harvest_page harvest.jsonl

adds the verdicts of a run to harvest_verdicts.jsonl, which has a line for each kernel and configuration, and writes
docs/harvest.md, and docs/wrong-3-6-0.md and its like for each version. Without a file, the pages of what is kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tlx_xdsl.backend.defects import DEFECTS, Defect, cause_of
from tlx_xdsl.gate import Results, Verdict
from tlx_xdsl.gate.verdict import counted

DOCS = Path(__file__).parents[2] / "docs"
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
OUTCOMES = ("clean", "finding", "differs", "not run")
KEPT = Path(__file__).with_name("harvest_verdicts.jsonl")
"""What was judged so far."""
NOTICE = "<!-- Made by `python -m tests.conformance.harvest_page`. -->"

SCRIPTS_OF = ("TritonBench (github.com/thunlp/TritonBench at 603e28a)",)
"""Where the scripts of `harvest_versions.SCRIPTS` are from."""

_HANDLING = {
    "mended": "tlx_xdsl puts it right", "refused": "tlx_xdsl refuses the kernel at the line",
    "warned": "tlx_xdsl warns at the line",
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", metavar="FILE.jsonl")
    options = parser.parse_args(argv)
    verdicts = kept_verdicts(KEPT.read_text()) if KEPT.exists() else []
    if options.results:
        verdicts = merged(verdicts, Results(options.results).known.values())
        KEPT.write_text(kept_text(verdicts))
    for version in VERSIONS:
        own = [each for each in verdicts if each.triton == version]
        (DOCS / file_of(version)).write_text(version_page(version, own))
    (DOCS / "harvest.md").write_text(harvest_page(verdicts))
    return 0


def merged(known: Iterable[Verdict], new: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts as they are kept, the newest on each kernel, configuration, Triton and assembler.

    A kernel need not take fp16 for fp32: what does not compile with it is no launch of that kernel.
    """
    found = {_case(each): each for each in known}
    found |= {_case(each): each for each in map(_shortened, new)}
    found = {case: each for case, each in found.items() if not (_is_half(each) and "not compile" in each.message)}
    return [found[case] for case in sorted(found)]


def _is_half(verdict: Verdict) -> bool:
    return verdict.configuration.endswith("fp32=fp16")


def _case(verdict: Verdict) -> tuple[str, str, str, str]:
    return verdict.kernel, verdict.configuration, verdict.triton, verdict.assembler


def _shortened(verdict: Verdict) -> Verdict:
    """A verdict with a configuration that is short, and yet its own; with its cause, if that is known by now."""
    text = verdict.configuration
    if len(text) > _LONGEST:
        text = f"{hashlib.sha256(text.encode()).hexdigest()[:6]} ...{text[-_LONGEST:]}"
    cause = cause_of("\n".join((verdict.message, *verdict.notes)), verdict.triton)
    defect = cause.name if cause is not None and verdict.outcome == "finding" else verdict.defect
    return replace(verdict, configuration=text, message=verdict.message.split(" | ")[0][:200], defect=defect)


_LONGEST = 40
"""Characters of a configuration that are kept, of its end, which has the warps and stages."""
_FIELDS = ("outcome", "message", "fault", "line", "defect", "compared", "undecided", "seconds")
"""What is kept of a verdict beside what it is about."""


def kept_text(verdicts: Iterable[Verdict]) -> str:
    """A line for each kernel and configuration: the seconds of each Triton whose code is clean, or more of a verdict.

    What an assembler made of a Triton's code is under `3.6.0 ptxas 12.8.93`.
    """
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for each in verdicts:
        said = {name: value for name in _FIELDS if (value := getattr(each, name)) != getattr(_BLANK, name)}
        under = f"{each.triton} ptxas {each.assembler}" if each.assembler else each.triton
        plain = said.keys() <= {"outcome", "seconds"} and each.outcome == "clean"
        lines.setdefault((each.kernel, each.configuration), {})[under] = each.seconds if plain else said
    return "".join(f"{json.dumps([*case, found], separators=(',', ':'))}\n" for case, found in lines.items())


def kept_verdicts(text: str) -> list[Verdict]:
    """The verdicts of lines that `kept_text` has made."""
    return [
        _kept(kernel, configuration, under, said)
        for kernel, configuration, found in map(json.loads, text.splitlines())
        for under, said in found.items()
    ]


def _kept(kernel: str, configuration: str, under: str, said: float | Mapping[str, Any]) -> Verdict:
    version, _, assembler = under.partition(" ptxas ")
    about = replace(_BLANK, kernel=kernel, configuration=configuration, triton=version, assembler=assembler)
    if isinstance(said, Mapping):
        return replace(about, **said)
    return replace(about, outcome="clean", seconds=said)


_BLANK = Verdict("", "", "", "sm_90a", "", "not run")


def file_of(version: str) -> str:
    """The name of a version's page."""
    return f"wrong-{version.replace('.', '-')}.md"


def version_page(version: str, verdicts: Sequence[Verdict]) -> str:
    """Write the page about a version: the known defects, and what the harvest has seen of each."""
    known = [each for each in DEFECTS if version in each.versions]
    lines = [f"# What Triton {version} gets wrong", "", NOTICE, ""]
    lines += [
        f"Of plain Triton kernels and of TLX kernels, as `tlx_xdsl.backend.defects` lists them: {len(known)} defects. "
        "[`tlx gate`](gate.md) finds in your kernels what the PTX machine can report; the kernels named here are those "
        "of the [harvest](harvest.md).",
        "",
    ]
    for each in known:
        lines += [*_defect(each, version, verdicts), ""]
    other = [each for each in verdicts if each.is_bad and not each.defect and each.fault in ("Triton", "ptxas", "")]
    if other:
        lines += ["## Without a known cause", "", "Candidates, which no GPU has confirmed:", "", *_listed(other), ""]
    return "\n".join(lines)


def _defect(defect: Defect, version: str, verdicts: Sequence[Verdict]) -> list[str]:
    mended = f"Mended in {defect.mended_in}." if defect.mended_in else "Not mended in any release."
    upstream = f" ({', '.join(map(_link, defect.upstream))})" if defect.upstream else ""
    lines = [f"## {defect.name.replace('_', ' ')}", "", f"Triton {version} {defect.what}{upstream}. {mended}"]
    lines += [f"{_HANDLING[defect.handling]}: `{defect.where}`."]
    seen = [each for each in verdicts if each.defect == defect.name]
    return [*lines, "", *_listed(seen)] if seen else lines


def _link(reference: str) -> str:
    found = re.fullmatch(r"([\w-]+/[\w-]+)#(\d+)", reference)
    return reference if found is None else f"[{reference}](https://github.com/{found[1]}/issues/{found[2]})"


def _listed(verdicts: Iterable[Verdict]) -> list[str]:
    """A line for each kernel and message, with the lines and the number of configurations."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for each in verdicts:
        said = re.sub(r"\d+", "N", each.message.split(" | ")[0])
        groups.setdefault((each.kernel, f"{each.outcome}: {said}"), []).append(each)
    return [
        f"- `{kernel}`, line {', '.join(sorted({str(each.line) for each in group}))}, "
        f"{len({each.configuration for each in group})} configurations: {said}"
        for (kernel, said), group in sorted(groups.items())
    ]


def harvest_page(verdicts: Sequence[Verdict]) -> str:
    """Write the page: what was run, what came out by suite and version, why code was not run, and what was found."""
    ptx = [each for each in verdicts if not each.assembler]
    cubins = [each for each in verdicts if each.assembler]
    kernels = {each.kernel for each in ptx}
    cases = {(each.kernel, each.configuration) for each in ptx}
    ran = [each.seconds for each in ptx if each.outcome != "not run"]
    lines = [
        "# The harvest: final code of public kernels", "", NOTICE, "",
        "Kernels of public repositories, recorded as [suites of them](cpu-conformance.md) launch them, and as the "
        f"scripts of {', '.join(SCRIPTS_OF)} do, and judged by [`tlx gate`](gate.md) for sm_90a: as they were "
        "launched, and some in drawn configurations of warps and stages or in half precision, each with four Triton "
        "versions. The verdicts are kept in `tests/conformance/harvest_verdicts.jsonl`.", "",
        f"Run so far: {len(kernels)} kernels in {len(cases)} configurations, {len(ptx)} verdicts on PTX and "
        f"{len(cubins)} on cubins; {sum(each.seconds for each in verdicts):,.0f} s in all on two cores that other work "
        f"shared, {median(ran):.1f} s for the median case with its compile.", "",
        *_suites(ptx), "",
        *_versions(ptx), "",
    ]  # fmt: skip
    if cubins:
        lines += ["Cubins of products with an operand in registers, compared with their PTX:", ""]
        lines += [
            "| ptxas | cubins | clean | finding | not run | operands compared | undecided |",
            "|---|---|---|---|---|---|---|",
        ]
        for release in sorted({each.assembler for each in cubins}):
            own = [each for each in cubins if each.assembler == release]
            counts = counted(own)
            compared, undecided = sum(each.compared for each in own), sum(each.undecided for each in own)
            lines.append(
                f"| {release} | {len(own)} | {counts['clean']} | {counts['finding']} | {counts['not run']} | "
                f"{compared:,} | {undecided:,} |"
            )
        lines.append("")
    lines += ["## Not run", "", *_reasons(ptx), "", "## Found", ""]
    found = [each for each in verdicts if each.is_bad]
    lines += [
        f"The pages of the versions list what was found by its cause: {', '.join(_page(each) for each in VERSIONS)}. "
        f"{len({each.kernel for each in found})} kernels have findings in some configuration of some version.", "",
        *_listed(each for each in found if each.fault != "kernel"), "",
    ]  # fmt: skip
    own = [each for each in found if each.fault == "kernel"]
    if own:
        lines += ["Here the interpreter, too, reports the kernel as it is launched:", "", *_listed(own), ""]
    return "\n".join(lines)


def _head(*columns: str) -> list[str]:
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def _page(version: str) -> str:
    return f"[{version}]({file_of(version)})"


def _suites(verdicts: Sequence[Verdict]) -> list[str]:
    lines = [
        "| suite | kernels | configurations | clean | finding | differs | not run |",
        "|---|---|---|---|---|---|---|",
    ]
    for suite in dict.fromkeys(each.kernel.partition("/")[0] for each in verdicts):
        own = [each for each in verdicts if each.kernel.startswith(f"{suite}/")]
        counts = counted(own)
        cells = [len({each.kernel for each in own}), len({(each.kernel, each.configuration) for each in own})]
        lines.append(f"| {suite} | {' | '.join(map(str, [*cells, *(counts[each] for each in OUTCOMES)]))} |")
    return lines


def _versions(verdicts: Sequence[Verdict]) -> list[str]:
    lines = _head("Triton", *OUTCOMES)
    for version in VERSIONS:
        counts = counted(each for each in verdicts if each.triton == version)
        lines.append(f"| {version} | {' | '.join(str(counts[each]) for each in OUTCOMES)} |")
    return lines


def _reasons(verdicts: Sequence[Verdict]) -> list[str]:
    counts = Counter(re.sub(r"\d+(\.\d+)*", "N", each.message)[:120] for each in verdicts if each.outcome == "not run")
    return [f"- {count}: {reason}" for reason, count in counts.most_common()]


if __name__ == "__main__":
    raise SystemExit(main())
