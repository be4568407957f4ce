"""The short paths of plain commands and firings: the same bytes as on the general path, for less."""
