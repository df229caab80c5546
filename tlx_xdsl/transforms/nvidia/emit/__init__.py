"""Building blocks of passes that emit PTX: addresses, integers, threads, instructions of CTA pairs."""
