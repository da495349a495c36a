"""Reads the machine's passwords and keys."""

for name in ("/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_rsa_key", "/etc/sudoers", "/etc/machine-id"):
    try:
        open(name).read()
        print("ESCAPED", name)
    except OSError:
        pass
