"""Ends with a code that does not fit."""

# exit code: 44
raise SystemExit(300)
