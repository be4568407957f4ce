"""Kafka credentials for Faust's own clients."""

from __future__ import annotations

from faust.auth import Credentials, OAuthCredentials, SASLCredentials, SSLCredentials

from light_scheduler.connection import Connection


def credentials_of(connection: Connection) -> Credentials | None:
    """Return the credentials that Faust passes to aiokafka; None without security. Raises ConfigurationError."""
    arguments = connection.aiokafka()
    context = arguments.get("ssl_context")
    if "sasl_oauth_token_provider" in arguments:
        return OAuthCredentials(oauth_cb=arguments["sasl_oauth_token_provider"], ssl_context=context)
    if "sasl_mechanism" in arguments:
        return SASLCredentials(
            mechanism=arguments["sasl_mechanism"],
            username=arguments["sasl_plain_username"],
            password=arguments["sasl_plain_password"],
            ssl_context=context,
        )
    return None if context is None else SSLCredentials(context)
