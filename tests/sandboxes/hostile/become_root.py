"""Becomes another user."""

import os
import subprocess

for user in (0, 1, 1001, 65534):
    for action in (lambda: os.setuid(user), lambda: os.setresuid(user, user, user), lambda: os.setgid(user), lambda: os.setgroups([user])):
        try:
            action()
            print("ESCAPED", user)
        except OSError:
            pass
for command in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["pkexec", "id", "-u"], ["mount"], ["newgrp", "root"]):
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        continue
    if done.stdout.strip() == "0":
        print("ESCAPED", command)
