"""Says MemoryError on a line that is not the last."""

# exit code: 1
# stopped by: None
import sys

print("MemoryError: not really", file=sys.stderr)
print("end", file=sys.stderr)
raise SystemExit(1)
