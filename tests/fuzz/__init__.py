"""Inputs that nobody meant: every decoder takes them or refuses them with its own error, soon, and in little memory."""
