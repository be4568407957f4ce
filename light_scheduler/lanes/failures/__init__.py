"""Handles failed transactions and unavailable targets of a lane, so that other work does not wait for them."""
