"""The structure of integer tensors and masks: what is linear in the positions of elements (docs/linalg.md)."""
