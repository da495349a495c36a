"""Raises its own limits and priority."""

import os
import resource

for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("ESCAPED", kind)
    except (OSError, ValueError):
        pass
for action in (
    lambda: os.nice(-10),
    lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000"),
):
    try:
        action()
        print("ESCAPED")
    except OSError:
        pass
