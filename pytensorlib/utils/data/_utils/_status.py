"""How often a worker checks whether its parent is alive."""

__all__ = ["MP_STATUS_CHECK_INTERVAL"]

MP_STATUS_CHECK_INTERVAL = 1.0  # seconds
