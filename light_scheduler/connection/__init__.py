"""How to reach Kafka: settings of a connection in, arguments of every client out.

secret        a value that shows nowhere
security      the settings, and whether they fit together
files         secrets and certificates in files, read again when they change
renewed       what is made of files, and made anew when they change
tls           an SSL context that takes renewed files for its new connections
http_security the settings of the workers' TLS, and whether they fit together
http_tls      both sides of HTTPS: SSL contexts, and why a connection fails
certificates  until when a certificate is valid, and whom it names
logins        the secrets of a login, from settings or files
tokens        OAUTHBEARER: tokens for client credentials
arguments     a cluster and its security, as aiokafka takes them
librdkafka    the same for librdkafka
registry      where the schema registry is, and its login
urls          logins in URLs, and URLs without them
principal     who one is in ACLs
diagnosis     why a connection fails, in plain words
redaction     what the clients may not log
"""

from .arguments import Address, Connection, connection_to
from .http_security import HttpSecurity
from .secret import Secret
from .security import KafkaSecurity

__all__ = ["Address", "Connection", "HttpSecurity", "KafkaSecurity", "Secret", "connection_to"]
