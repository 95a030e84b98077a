"""How often a process looks whether others are still there."""

__all__ = ["MP_STATUS_CHECK_INTERVAL"]

MP_STATUS_CHECK_INTERVAL = 1.0  # seconds
