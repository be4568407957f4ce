"""Explains in sentences why a schedule fired, will fire or does not fire, from its history and current facts.

facts      facts besides the history
updates    which events define a schedule
lateness   why a delivery was late, according to the history
sentences  a sentence for each event
outlook    the state in a sentence: the next firing, or why there is none
waiting    why a pending schedule waits
resuming   what a paused schedule would do if it were resumed
ending     how a schedule that is not pending ended

Sentences only state what the history and the facts show.
"""

from .ending import Outlook, State
from .facts import Facts, Outage, Standing, Stopped
from .outlook import outlook
from .sentences import Sentence, sentences

__all__ = ["Facts", "Outage", "Outlook", "Sentence", "Standing", "State", "Stopped", "outlook", "sentences"]
