"""The dialects of TTL: `ttl`, `ttkernel`, `ttcore`, `emitc`."""
