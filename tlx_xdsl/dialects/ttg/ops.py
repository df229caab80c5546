"""The old place of `memdesc_type`, for the passes that still import it from here."""

from tlx_xdsl.dialects.ttg.types import memdesc_type as memdesc_type
