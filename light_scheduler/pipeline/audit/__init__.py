"""The job `audit`: was everything delivered that was promised, once, in time and unaltered?

evidence, gathering   records of all topics in one form, by schedule
replay                a schedule's commands and history through the engine: what was promised (promises)
orders, diagnosis     what explains a line of history; what is wrong with one that nothing explains
verdict               what was promised against what was delivered
judging               the same, for all schedules, where their rows are
rates                 what Spark can expand without the engine, as a check on it
job, summary          the whole of it, and what it has to say
"""

from .job import AuditOptions, Imported, main
from .summary import AuditSummary

__all__ = ["AuditOptions", "AuditSummary", "Imported", "main"]
