"""The job `audit`: was everything delivered that was promised, once, in time and unaltered?

evidence, gathering   records of all topics in one form, by schedule
readings              Kafka's columns to that form; plain_commands, lines and messages: of each topic
evidence_source       the same, where records are read
owners                whose a message is, also in dialects of other schedulers; commands_topics: where commands are
replay                a schedule's commands and history through the engine: what was promised (promises)
cases, case           a schedule's rows, lane by lane, its history last
found, overflow       messages and dead letters of a schedule; what of it is too much for memory
traced                messages in dialects of other schedulers
orders, diagnosis     what explains a line of history; what is wrong with one that nothing explains
verdict, deliveries   what was promised against what was delivered; counts of it
comparison, bounds    the same, firing by firing; traced_comparison: in dialects of other schedulers
pairing               firings and messages of the same content, by time
verdict_table, terms  the same, for all schedules, where their rows are; what holds for all of them
seeking               messages that do not tell of their schedules
handled               how far the commands of each tenant have been carried out
changes               changes that history tells of: stops (of tenants), forwarding (by delay rules)
clearing, claims      schedules that need no replay, by what their records claim
canonical             commands as columns; header_lists: headers of many records in flat arrays
rates                 what Spark can expand without the engine, as a check on it
options, reading      what is audited; the application's topics as evidence
job, increments       the whole of it: of everything, or of what has come since the last audit
standing, watermark   what an audit leaves for the next one: of a schedule, and of the topics
continuing, state     topics from there on, and the folder that holds it
reporting, summary    what it has to say
"""

from .job import main
from .options import AuditOptions, Imported
from .summary import AuditSummary

__all__ = ["AuditOptions", "AuditSummary", "Imported", "main"]
