"""Access over HTTP: identities and what they may do.

identity         roles, rights, and what an identity may do with a right (pure)
tokens           a token: its text, its secrets, its rotation (pure)
records          tokens as records of the tenants topic (pure)
accepted_tokens  all tokens at one moment, and the token that a text stands for (pure)
peers            how workers prove to each other that they are workers (pure)
sealing          texts that only workers can read (pure)
jwks             the public keys of an identity provider
oidc             tokens of an identity provider
store            the tokens in the tenants topic: reads and changes them
changes          history events of changes (pure)
service          the store in a worker: follows the topic, and notes when tokens are used
"""

from .accepted_tokens import AccessBook
from .identity import ANYONE, PEER, Identity, Right, Role, Verdict
from .tokens import Token, TokenError

__all__ = ["ANYONE", "PEER", "AccessBook", "Identity", "Right", "Role", "Token", "TokenError", "Verdict"]
