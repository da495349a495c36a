"""Builds a sandbox like bubblewrap, with the same options, for machines without bubblewrap: a program.

Run as `python -I -S -c SOURCE OPTION… -- COMMAND…`. It supports the options that we use; it always creates all
namespaces and drops all capabilities. Needs Linux 5.12 and user namespaces.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

# ruff: noqa: S108  (/tmp is the sandbox's own)

_CLONE_NEWNS, _CLONE_NEWCGROUP, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_CLONE_FLAGS = _CLONE_NEWNS | _CLONE_NEWCGROUP | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET
"""Without CLONE_NEWUSER: a user namespace comes first, and another one at the end."""

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_SLAVE, _MNT_DETACH = 4096, 16384, 1 << 18, 1 << 19, 2
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_SYS_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 22, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL, _SECCOMP_MODE_FILTER, _LINUX_CAPABILITY_VERSION_3 = 4, 2, 0x20080522
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_TWO_ARGUMENTS = ("--bind", "--ro-bind", "--symlink", "--setenv")
_IMPLIED = ("--die-with-parent", "--new-session")

Options = list[tuple[str, str, str]]

_kernel = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str = "") -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
    return result


def _mount(source: str, target: str, file_system: str = "", flags: int = 0, options: str = "") -> None:
    arguments = [os.fsencode(argument) for argument in (source, target, file_system, options)]
    _check(
        _kernel.mount(arguments[0], arguments[1], arguments[2] or None, flags, arguments[3] or None), target
    )


def _set_mount_attributes(target: str, attributes: int) -> None:
    """Set attributes of a mount and all mounts below it."""
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    path = os.fsencode(target)
    _check(_kernel.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, request, len(request)), target)


def _pivot(new: str, old: str) -> None:
    _check(_kernel.syscall(_SYS_PIVOT_ROOT, os.fsencode(new), os.fsencode(old)), new)


class RootBuilder:
    """Builds the new root, option by option; `--perms` and `--size` apply to the next mount or folder."""

    def __init__(self) -> None:
        self.folder = "/"
        self.settings = {"--uid": "0", "--gid": "0", "--perms": "", "--size": ""}

    def take_options(self) -> tuple[int, str]:
        perms, size = int(self.settings["--perms"] or "755", 8), self.settings["--size"]
        self.settings.update({"--perms": "", "--size": ""})
        return perms, f"mode={perms:o},size={size}" if size else f"mode={perms:o}"

    def make(self, option: str, first: str, second: str) -> None:
        if option in ("--bind", "--ro-bind"):
            self.bind(first, second, option == "--ro-bind")
        elif option == "--symlink":
            os.symlink(first, _inside(second))
        elif option == "--tmpfs":
            _make_folder(first)
            _mount("tmpfs", _inside(first), "tmpfs", _MS_NOSUID | _MS_NODEV, self.take_options()[1])
        elif option == "--dir":
            _make_folder(first, self.take_options()[0])
        elif option == "--remount-ro":
            _mount("none", _inside(first), "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
        else:
            self.make_special(option, first)

    def make_special(self, option: str, argument: str) -> None:
        if option == "--proc":
            _make_folder(argument)
            _mount("proc", _inside(argument), "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        elif option == "--dev":
            _devices(argument)
        elif option == "--hostname":
            socket.sethostname(argument)
        elif option == "--chdir":
            self.folder = argument
        elif option in self.settings:
            self.settings[option] = argument

    def bind(self, source: str, target: str, read_only: bool) -> None:
        source = f"/oldroot{source}"
        if os.path.isdir(source):
            _make_folder(target)
        else:
            _make_folder(os.path.dirname(target))
            os.close(os.open(_inside(target), os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(source, _inside(target), "", _MS_BIND | _MS_REC)
        attributes = _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV
        _set_mount_attributes(_inside(target), attributes | (_MOUNT_ATTR_RDONLY if read_only else 0))


def _inside(path: str) -> str:
    return "/newroot" if path == "/" else f"/newroot{path}"


def _make_folder(path: str, perms: int = 0o755) -> None:
    """Create a folder and its parents."""
    if path == "/" or os.path.isdir(_inside(path)):
        return
    _make_folder(os.path.dirname(path))
    os.mkdir(_inside(path))
    os.chmod(_inside(path), perms)


def _devices(path: str) -> None:
    _make_folder(path)
    top = _inside(path)
    _mount("tmpfs", top, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    for name in _DEVICES:
        os.close(os.open(f"{top}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(f"/oldroot/dev/{name}", f"{top}/{name}", "", _MS_BIND)
        _set_mount_attributes(f"{top}/{name}", _MOUNT_ATTR_NOSUID)
    for name in ("shm", "pts"):
        os.mkdir(f"{top}/{name}")
    _mount("devpts", f"{top}/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    for name, stream in _LINKS.items():
        os.symlink(f"/proc/self/fd{stream}", f"{top}/{name}")
    os.symlink("pts/ptmx", f"{top}/ptmx")


def _build(options: Options) -> RootBuilder:
    """Create an empty root, fill it from the old one by the options, then unmount the old one, as bubblewrap does."""
    os.umask(0)
    _mount("none", "/", "", _MS_REC | _MS_SLAVE)
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    for name in ("newroot", "oldroot"):
        os.mkdir(f"/tmp/{name}")
    _mount("/tmp/newroot", "/tmp/newroot", "", _MS_BIND | _MS_REC)
    _pivot("/tmp", "/tmp/oldroot")
    os.chdir("/")
    root = RootBuilder()
    for option, first, second in options:
        root.make(option, first, second)
    _mount("none", "/oldroot", "", _MS_REC | _MS_PRIVATE)
    _check(_kernel.umount2(b"/oldroot", _MNT_DETACH))
    os.chdir("/newroot")
    _pivot(".", ".")
    _check(_kernel.umount2(b".", _MNT_DETACH))
    os.chdir("/")
    return root


def _enter_user_namespace(user: str, group: str, outer_user: int, outer_group: int) -> None:
    """Enter a new user namespace, with our uid and gid mapped to the given ones."""
    _check(_kernel.unshare(_CLONE_NEWUSER), "user namespace")
    lines = {"setgroups": "deny", "uid_map": f"{user} {outer_user} 1", "gid_map": f"{group} {outer_group} 1"}
    for name, line in lines.items():
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, line.encode())
        os.close(descriptor)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | _IFF_UP))


def _drop_privileges() -> None:
    _check(_kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in range(64):
        _kernel.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _kernel.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _check(_kernel.capset(struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0), bytes(24)))


def _filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _check(_kernel.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0))


def _exec(command: list[str], variables: dict[str, str], call_filter: bytes) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    _filter_calls(call_filter)
    folders = [""] if "/" in command[0] else [f"{folder}/" for folder in variables["PATH"].split(":")]
    for path in (folder + command[0] for folder in folders):
        try:
            os.execve(path, command, variables)
        except (FileNotFoundError, NotADirectoryError):
            continue
    raise FileNotFoundError(f"execvp {command[0]}: no such program")


def _first_process(options: Options, command: list[str], call_filter: bytes, error_fd: int) -> int:
    """PID 1 of the sandbox: builds the root, drops privileges, starts the program and reaps children until the program
    exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _raise_loopback()
    root = _build(options)
    _enter_user_namespace(root.settings["--uid"], root.settings["--gid"], 0, 0)
    _drop_privileges()
    _kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.chdir(root.folder)
    os.umask(0o022)
    variables = {name: value for option, name, value in options if option == "--setenv"}
    if (program := os.fork()) == 0:
        _exec(command, {**os.environ, "PWD": root.folder, **variables}, call_filter)
    os.close(error_fd)
    _filter_calls(call_filter)
    while True:
        pid, status = os.wait()
        if pid == program:
            return _shell_code(status)


def _shell_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _expand_arguments(arguments: list[str]) -> list[str]:
    """The arguments, with `--args FD` expanded."""
    expanded: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        expanded += (
            os.fsdecode(_read_all(int(next(rest)))).split("\0")[:-1] if argument == "--args" else [argument]
        )
    return expanded


def _parse_options(arguments: list[str]) -> Options:
    """Options with their arguments; bind sources are resolved now, while the host's file system is still visible."""
    options: Options = []
    rest = iter(arguments)
    for option in rest:
        if option not in _IMPLIED and not option.startswith("--unshare-"):
            first = next(rest)
            second = next(rest) if option in _TWO_ARGUMENTS else ""
            options.append((option, os.path.realpath(first) if "bind" in option else first, second))
    return options


def _report(what: str, value: int, reporter: int) -> None:
    os.write(reporter, f'{{"{what}": {value}}}\n'.encode())


def main(arguments: list[str]) -> int:
    separator = arguments.index("--")
    options = _parse_options(_expand_arguments(arguments[:separator]))
    values = {option: value for option, value, _ in options}
    call_filter, reporter = _read_all(int(values["--seccomp"])), int(values["--json-status-fd"])
    os.set_inheritable(reporter, False)
    error_read, error_write = os.pipe()
    _enter_user_namespace("0", "0", os.geteuid(), os.getegid())
    _check(_kernel.unshare(_CLONE_FLAGS), "namespaces")
    if (pid := os.fork()) == 0:
        for descriptor in (reporter, error_read):
            os.close(descriptor)
        _exit_with_result(
            error_write, lambda: _first_process(options, arguments[separator + 1 :], call_filter, error_write)
        )
    os.close(error_write)
    _report("child-pid", pid, reporter)
    _drop_privileges()
    _kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    code = _shell_code(os.waitpid(pid, 0)[1])
    if os.read(error_read, 1):
        return 1
    _report("exit-code", code, reporter)
    return code


def _exit_with_result(error_fd: int, work: Callable[[], int]) -> None:
    """Exit with the result; on failure writes to `error_fd`, so the parent can tell a set-up error from the program's
    exit code."""
    try:
        os._exit(work())
    except Exception as error:
        os.write(2, f"namespaces: {error}\n".encode())
        os.write(error_fd, b"!")
        os._exit(1)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as problem:
        sys.exit(f"namespaces: {problem}")
