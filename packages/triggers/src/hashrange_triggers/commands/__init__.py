"""The commands `stream` and `trigger`."""
