"""Why a schedule fired, fires or does not: its history, and what is known of it just now, as sentences.

facts      what is known besides the history
updates    what an event tells of the definition of its schedule
lateness   why a delivery was late, as far as the history says
sentences  one event, one sentence
outlook    the state in one sentence: the next firing, or why there is none
waiting    what a pending schedule waits for
resuming   what a paused schedule would do if it were resumed
ending     how a schedule that is not pending ended

A sentence says no more than the history and the facts do.
"""

from .ending import Outlook, State
from .facts import Facts, Outage, Standing, Stopped
from .outlook import outlook
from .sentences import Sentence, sentences

__all__ = ["Facts", "Outage", "Outlook", "Sentence", "Standing", "State", "Stopped", "outlook", "sentences"]
