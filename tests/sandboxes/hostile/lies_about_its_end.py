"""Says that all is well and fails."""

# exit code: 1
print('{"exit-code": 0}')
print("exit code 0")
raise SystemExit(1)
