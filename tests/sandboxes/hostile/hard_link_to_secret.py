"""Links the secret's inode into the workspace."""

import os

for source in (os.environ["SECRET"], "/etc/passwd", "/usr/bin/env"):
    try:
        os.link(source, "hard")
        print("ESCAPED")
    except OSError:
        pass
