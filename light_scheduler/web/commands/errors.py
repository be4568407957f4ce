"""Why a command that is right is not sent, or not sent again."""


class TooManyWaitingError(Exception):
    """Too many commands of this tenant are being sent or wait for their answers."""


class KeyReusedError(Exception):
    """The same idempotency key was used with a different request."""


class StillRunningError(Exception):
    """The first request with this idempotency key is still in progress."""


class TooManyKeysError(Exception):
    """The tenant has used its maximum number of idempotency keys."""
