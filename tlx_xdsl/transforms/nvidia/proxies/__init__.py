"""What TMA and the tensor cores do, in order with what threads do."""
