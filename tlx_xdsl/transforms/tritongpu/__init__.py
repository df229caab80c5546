"""From tensors without layouts to TTGIR that stock Triton takes."""
