"""How to reach Kafka: converts settings of a connection to arguments of every client.

secret               a value that appears nowhere
security             the settings, and whether they are consistent
files                secrets and certificates in files, read again when they change
renewed_files        values made from files, and made again when these change
tls                  an SSL context that uses renewed files for new connections
http_security        the settings of the workers' TLS, and whether they are consistent
http_tls             both sides of HTTPS: SSL contexts, and why a connection fails
identity_provider    the settings of an identity provider
certificates         the validity and subject of a certificate
distinguished_names  a certificate's names as brokers print them
coordinators         waiting for Kafka's coordinators
logins               the secrets of a login, from settings or files
tokens               OAUTHBEARER: tokens for client credentials
arguments            a cluster and its security, as arguments of aiokafka
librdkafka           the same for librdkafka
registry             the address of the schema registry, and its login
urls                 logins in URLs, and URLs without them
worker_connection    requests to a worker's HTTP server
principal            the client's name in ACLs
diagnosis            why a connection fails, in plain words
redaction            keeps secrets out of the clients' logs
"""

from .arguments import Address, Connection, connection_to
from .http_security import HttpSecurity
from .secret import Secret
from .security import KafkaSecurity

__all__ = ["Address", "Connection", "HttpSecurity", "KafkaSecurity", "Secret", "connection_to"]
