"""POSTs that may be sent again with the same idempotency key: only the first is carried out."""
