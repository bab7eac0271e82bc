"""What users can ask: what was captured, what entries expect, why one does not fit."""

from dynacap.reports.entries import (
    EntryGuards as EntryGuards,
    EntryMatch as EntryMatch,
    GuardReport as GuardReport,
    Why as Why,
    guards_of as guards_of,
    session_of as session_of,
    why_of as why_of,
)
from dynacap.reports.explanation import (
    Explanation as Explanation,
    explain_session as explain_session,
)
from dynacap.reports.recompiling import (
    RecompileReport as RecompileReport,
    recompiles_of as recompiles_of,
)
