"""Knocks at the kernel's doors for administrators."""

import ctypes

call = ctypes.CDLL(None).syscall
doors = {
    "bpf": (321, 0, None, 0),
    "perf": (298, None, 0, -1, -1, 0),
    "userfaultfd": (323, 0),
    "kexec": (246, 0, 0, None, 0),
    "init_module": (175, None, 0, b""),
    "finit_module": (313, 0, b"", 0),
    "reboot": (169, 0xFEE1DEAD, 672274793, 0, None),
    "swapon": (167, b"x", 0),
    "acct": (163, b"x"),
    "syslog": (103, 3, None, 0),
    "quotactl": (179, 0, None, 0, None),
    "fanotify": (300, 0, 0),
    "iopl": (172, 3),
    "vhangup": (153,),
}

for name, (number, *arguments) in doors.items():
    ctypes.set_errno(0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, *arguments) >= 0 or ctypes.get_errno() not in (1, 38):
        print("ESCAPED", name, ctypes.get_errno())
