"""Who may do what over HTTP: tokens, logins, rights, and the names that requests leave in the history."""
