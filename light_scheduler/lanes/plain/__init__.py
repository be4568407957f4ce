"""Fast paths for plain commands and firings. They write the same bytes as the general path."""
