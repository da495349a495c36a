"""Plants code in the interpreter that Septet itself runs on, or opens it to others."""

import os
import stat
import sys
import sysconfig

for folder in {
    sys.prefix,
    sys.base_prefix,
    sysconfig.get_path("purelib"),
    sysconfig.get_path("stdlib"),
    os.path.dirname(sys.executable),
}:
    try:
        open(os.path.join(folder, "sitecustomize.py"), "w")
        print("ESCAPED", folder)
    except OSError:
        pass
    before = stat.S_IMODE(os.stat(folder).st_mode)
    try:
        os.chmod(folder, before ^ 0o001)
    except OSError:
        continue
    if stat.S_IMODE(os.stat(folder).st_mode) != before:
        print("ESCAPED chmod", folder)
        os.chmod(folder, before)
