"""Access over HTTP: who asks, and what they may do.

identity  roles, rights, and what an identity may do with a right (pure)
tokens    a token: its text, its secrets, its rotation (pure)
records   tokens as records of the tenants topic (pure)
book      all tokens at one moment, and whose token a text is (pure)
peers     how workers prove to each other that they are workers (pure)
jwks      the public keys of an identity provider
oidc      tokens of an identity provider
store     the tenants topic: reads the book, and changes it
changes   what the history tells of a change (pure)
service   the store in a worker: follows the topic, and notes when tokens are used
"""

from .accepted_tokens import AccessBook
from .identity import ANYONE, PEER, Identity, Right, Role, Verdict
from .tokens import Token, TokenError

__all__ = ["ANYONE", "PEER", "AccessBook", "Identity", "Right", "Role", "Token", "TokenError", "Verdict"]
