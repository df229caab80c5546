"""The table of what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import exp, log
from statistics import median
from typing import Any

from benchmarks.warp_specialize.candidates import HAND, OURS, RULE, STOCK, STOCK_WS


def table(record: Mapping[str, Any]) -> str:
    """TFLOP/s of the best of each kind, ours as a part of the others, and what failed."""
    lines = [f"{record['family']} on {record.get('machine', {}).get('device', '?')}"]
    if others := record.get("machine", {}).get("prepared by another package"):
        lines.append(f"  NOT of this package: binaries are of {', '.join(others)}")
    over_stock: list[float] = []
    of_hand: list[float] = []
    for name, case in record["cases"].items():
        ms = {kind: median(times) for kind, times in case["cool"]["times"].items()}
        rates = "  ".join(f"{kind} {case['operations'] / each * 1e-9:.0f}" for kind, each in ms.items())
        stock = min((ms[kind] for kind in (STOCK, STOCK_WS) if kind in ms), default=None)
        ratios = ""
        if OURS in ms and stock is not None:
            over_stock.append(stock / ms[OURS])
            ratios = f"over stock {stock / ms[OURS]:.3f}"
            ratios += f", by rule {stock / ms[RULE]:.3f}" if RULE in ms else ""
        if OURS in ms and HAND in ms:
            of_hand.append(ms[HAND] / ms[OURS])
            ratios += f", of hand {ms[HAND] / ms[OURS]:.3f}"
        lines.append(f"  {name}: {ratios}")
        lines.append(f"      TFLOP/s: {rates}")
        lines.append("      " + "; ".join(f"{kind}: {label}" for kind, label in case["best"].items()))
        for kind, errors in case["errors"].items():
            whys = Counter(why.splitlines()[0][:110] for why in errors.values())
            lines += [f"      {count} {kind}: {why}" for why, count in whys.items()]
    lines += _mean("over stock", over_stock, record.get("wanted"))
    lines += _mean("of hand", of_hand, record.get("wanted of hand"))
    lines += [f"  stopped at {where}: {why}" for where, why in record["skipped"].items()]
    if not record.get("finished"):
        lines.append(f"  not finished, was at {record['running']}")
    return "\n".join(lines)


def _mean(what: str, ratios: list[float], wanted: float | None) -> list[str]:
    if not ratios:
        return []
    mean = exp(sum(map(log, ratios)) / len(ratios))
    return [f"  {what}: mean {mean:.3f} (wanted {wanted}), worst {min(ratios):.3f}"]
