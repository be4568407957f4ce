"""Which worker gets which partitions, and which warm copies: pure, and independent of Faust."""
