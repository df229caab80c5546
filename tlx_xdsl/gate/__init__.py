"""The gate: kernels, configurations, Triton versions and targets, and a verdict on the final code of each.

`gate` judges subjects; `tlx gate` makes them of a command line (docs/gate.md).
"""

from .judge import Manner
from .recorded import subjects_for
from .run import Report, gate
from .subject import Subject
from .verdict import Results, Verdict

__all__ = ["Manner", "Report", "Results", "Subject", "Verdict", "gate", "subjects_for"]
