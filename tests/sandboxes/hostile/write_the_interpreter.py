"""Plants code in the interpreter that Septet itself runs on."""

import os, sys, sysconfig

for folder in {sys.prefix, sys.base_prefix, sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), os.path.dirname(sys.executable)}:
    try:
        open(os.path.join(folder, "sitecustomize.py"), "w")
        print("ESCAPED", folder)
    except OSError:
        pass
    try:
        os.chmod(folder, 0o777)
        print("ESCAPED chmod", folder)
    except OSError:
        pass
