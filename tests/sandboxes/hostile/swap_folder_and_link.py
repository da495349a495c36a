"""Swaps a folder with a link to the secret's folder as fast as it can, until the end."""

# limits: seconds=2
# stopped by: time
import os

secrets = os.path.dirname(os.environ["SECRET"])
os.makedirs("real")
open("real/" + os.path.basename(os.environ["SECRET"]), "w").write("mine")
os.symlink(secrets, "link")
while True:
    try:
        os.rename("real", "spare")
        os.rename("link", "real")
        os.rename("real", "link")
        os.rename("spare", "real")
    except OSError:
        pass
