"""The clustering mathematics: functions on arrays."""
