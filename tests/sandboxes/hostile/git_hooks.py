"""Plants a hook that the person's next commit would run."""

import os

for name in (".git/hooks/pre-commit", ".git/config", ".git/hooks/post-checkout"):
    try:
        open(name, "w").write("#!/bin/sh\necho owned")
        print("ESCAPED", name)
    except OSError:
        pass
for action in (lambda: os.rename(".git", "gone"), lambda: os.rename(".git/hooks", "gone"), lambda: os.chmod(".git/hooks", 0o777)):
    try:
        action()
        print("ESCAPED")
    except OSError:
        pass
