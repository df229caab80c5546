"""The dialects of tlx_xdsl: `tt`, `ttg`, `ttng`, `tlx` and our `arith` override. See `registry` for the lazy list."""
