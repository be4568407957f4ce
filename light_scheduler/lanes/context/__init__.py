"""What the cycles of a lane are given, and what they share from one to the next."""
