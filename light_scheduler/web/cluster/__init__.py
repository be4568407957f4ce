"""The workers of an application as one: each asks the others for what it does not have itself."""
