"""One line of ten megabytes."""

# stopped by: None
print("x" * 10_000_000)
