"""What waited, for how long, and how it ended: every analysis takes a DataFrame and returns one.

All are exact, and none puts a whole instance, kind or key on one task: running totals and ranks are taken in
two phases (`running`).
"""

from abeyance.pipeline.analysis.incidents import incidents
from abeyance.pipeline.analysis.keys import by_key
from abeyance.pipeline.analysis.pending import pending_over_time, pending_plot
from abeyance.pipeline.analysis.ranked import Ranked, ranked_waits
from abeyance.pipeline.analysis.summary import summary, waits
from abeyance.pipeline.analysis.timeout_curve import thinned, timeout_curve

__all__ = [
    "Ranked",
    "by_key",
    "incidents",
    "pending_over_time",
    "pending_plot",
    "ranked_waits",
    "summary",
    "thinned",
    "timeout_curve",
    "waits",
]
