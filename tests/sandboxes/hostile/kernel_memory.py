"""Opens the kernel's and the machine's memory."""

for name in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kallsyms_", "/dev/kmsg", "/proc/kmsg"):
    try:
        if open(name, "rb", buffering=0).read(64):
            print("ESCAPED", name)
    except OSError:
        pass
