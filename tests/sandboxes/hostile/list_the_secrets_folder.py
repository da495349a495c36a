"""Sees whether the folder of the secret can be listed."""

import os

if os.path.exists(os.environ["SECRET"]):
    print("ESCAPED")
for folder in ("/root", "/home", os.path.dirname(os.environ["SECRET"])):
    try:
        print(folder, [name for name in os.listdir(folder) if "secret" in name and print("ESCAPED")])
    except OSError:
        pass
