"""What waited, for how long, and how it ended: every analysis takes a DataFrame and returns one.

All are exact, and none puts a whole instance, kind or key on one task: running totals and ranks are taken in
two phases (`running`).
"""

from abeyant.pipeline.analysis.incidents import incidents
from abeyant.pipeline.analysis.keys import by_key
from abeyant.pipeline.analysis.pending import pending_over_time, pending_plot
from abeyant.pipeline.analysis.ranked import Ranked, ranked_waits
from abeyant.pipeline.analysis.summary import summary, waits
from abeyant.pipeline.analysis.timeout_curve import thinned, timeout_curve

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
