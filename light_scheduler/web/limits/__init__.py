"""What requests may take of a worker at a time, shared among tenants, and slice by slice."""
