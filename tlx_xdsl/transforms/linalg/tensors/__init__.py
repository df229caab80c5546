"""The handlers of single operations of `linalg-lower-tensors`, by topic."""
