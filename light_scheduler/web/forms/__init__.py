"""The forms of requests and answers that all handlers share: parameters, documents, cursors and problems."""
