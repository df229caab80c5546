"""The command `tlx ttl`, and the part of `tlx doctor` about it."""
