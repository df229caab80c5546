"""Products of consumers in Blackwell's tensor cores, whose results lie in tensor memory."""
