"""The compile driver: from a kernel's source to text, and the caches of what it makes."""
