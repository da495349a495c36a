"""Builds a sandbox as bubblewrap does, by the same options, where the machine has no bubblewrap: a program.

Run as `python -I -S -c SOURCE OPTION… -- COMMAND…`. It knows the options that a view is made of; every namespace is
always new, and no capability is ever kept. Needs Linux 5.12 and user namespaces.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

# ruff: noqa: S108  (quick to start is the point; /tmp is the sandbox's own)

_NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""Mounts, control groups, names, messages, processes and network; users come first and once more at the end."""

_NEW_USERS = 0x10000000
_NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _SLAVE, _PRIVATE = 2, 4, 8, 32, 4096, 16384, 1 << 19, 1 << 18
_RDONLY, _DETACH = 1, 2
_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _BOUNDING_DROP, _AMBIENT, _DIE_WITH_PARENT = 38, 22, 24, 47, 1
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_TAKES_TWO = ("--bind", "--ro-bind", "--symlink", "--setenv")
_ALWAYS = ("--die-with-parent", "--new-session")

Options = list[tuple[str, str, str]]

_kernel = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str = "") -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
    return result


def _mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    words = [os.fsencode(word) for word in (source, target, kind, options)]
    _check(_kernel.mount(words[0], words[1], words[2] or None, flags, words[3] or None), target)


def _set(target: str, attributes: int) -> None:
    """For the mount and all that are mounted below it."""
    setting = struct.pack("=QQQQ", attributes, 0, 0, 0)
    path = os.fsencode(target)
    _check(_kernel.syscall(_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, setting, len(setting)), target)


def _pivot(new: str, old: str) -> None:
    _check(_kernel.syscall(_PIVOT_ROOT, os.fsencode(new), os.fsencode(old)), new)


class View:
    """The new root, made option by option; permissions and a size hold for the next thing made."""

    def __init__(self) -> None:
        self.folder = "/"
        self.numbers = {"--uid": "0", "--gid": "0", "--perms": "", "--size": ""}

    def take_options(self) -> tuple[int, str]:
        perms, size = int(self.numbers["--perms"] or "755", 8), self.numbers["--size"]
        self.numbers.update({"--perms": "", "--size": ""})
        return perms, f"mode={perms:o},size={size}" if size else f"mode={perms:o}"

    def make(self, option: str, first: str, second: str) -> None:
        if option in ("--bind", "--ro-bind"):
            self.bind(first, second, option == "--ro-bind")
        elif option == "--symlink":
            os.symlink(first, _inside(second))
        elif option == "--tmpfs":
            _make_folder(first)
            _mount("tmpfs", _inside(first), "tmpfs", _NOSUID | _NODEV, self.take_options()[1])
        elif option == "--dir":
            _make_folder(first, self.take_options()[0])
        elif option == "--remount-ro":
            _mount("none", _inside(first), "", _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
        else:
            self.special(option, first)

    def special(self, option: str, place: str) -> None:
        if option == "--proc":
            _make_folder(place)
            _mount("proc", _inside(place), "proc", _NOSUID | _NODEV | _NOEXEC)
        elif option == "--dev":
            _devices(place)
        elif option == "--hostname":
            socket.sethostname(place)
        elif option == "--chdir":
            self.folder = place
        elif option in self.numbers:
            self.numbers[option] = place

    def bind(self, source: str, target: str, closed: bool) -> None:
        source = f"/oldroot{source}"
        if os.path.isdir(source):
            _make_folder(target)
        else:
            _make_folder(os.path.dirname(target))
            os.close(os.open(_inside(target), os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(source, _inside(target), "", _BIND | _REC)
        _set(_inside(target), _NOSUID | _NODEV | (_RDONLY if closed else 0))


def _inside(path: str) -> str:
    return "/newroot" if path == "/" else f"/newroot{path}"


def _make_folder(path: str, perms: int = 0o755) -> None:
    """The folder, and those on the way to it."""
    if path == "/" or os.path.isdir(_inside(path)):
        return
    _make_folder(os.path.dirname(path))
    os.mkdir(_inside(path))
    os.chmod(_inside(path), perms)


def _devices(place: str) -> None:
    _make_folder(place)
    top = _inside(place)
    _mount("tmpfs", top, "tmpfs", _NOSUID | _NODEV, "mode=0755")
    for name in _DEVICES:
        os.close(os.open(f"{top}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(f"/oldroot/dev/{name}", f"{top}/{name}", "", _BIND)
        _set(f"{top}/{name}", _NOSUID)
    for name in ("shm", "pts"):
        os.mkdir(f"{top}/{name}")
    _mount("devpts", f"{top}/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    for name, stream in _LINKS.items():
        os.symlink(f"/proc/self/fd{stream}", f"{top}/{name}")
    os.symlink("pts/ptmx", f"{top}/ptmx")


def _build(options: Options) -> View:
    """What bubblewrap does: an empty root beside the old one, filled from it, and then the old one is gone."""
    os.umask(0)
    _mount("none", "/", "", _REC | _SLAVE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=0755")
    for name in ("newroot", "oldroot"):
        os.mkdir(f"/tmp/{name}")
    _mount("/tmp/newroot", "/tmp/newroot", "", _BIND | _REC)
    _pivot("/tmp", "/tmp/oldroot")
    os.chdir("/")
    view = View()
    for option, first, second in options:
        view.make(option, first, second)
    _mount("none", "/oldroot", "", _REC | _PRIVATE)
    _check(_kernel.umount2(b"/oldroot", _DETACH))
    os.chdir("/newroot")
    _pivot(".", ".")
    _check(_kernel.umount2(b".", _DETACH))
    os.chdir("/")
    return view


def _enter_user_namespace(user: str, group: str, was_user: int, was_group: int) -> None:
    """A new user namespace, in which we are somebody."""
    _check(_kernel.unshare(_NEW_USERS), "user namespace")
    lines = {"setgroups": "deny", "uid_map": f"{user} {was_user} 1", "gid_map": f"{group} {was_group} 1"}
    for name, line in lines.items():
        place = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(place, line.encode())
        os.close(place)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, _GET_FLAGS, request), 16)
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH22x", b"lo", flags | _UP))


def _drop_privileges() -> None:
    _check(_kernel.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(64):
        _kernel.prctl(_BOUNDING_DROP, capability, 0, 0, 0)
    _kernel.prctl(_AMBIENT, 4, 0, 0, 0)
    _check(_kernel.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)))


def _filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _check(_kernel.prctl(_SET_SECCOMP, 2, head, 0, 0))


def _exec(command: list[str], variables: dict[str, str], calls: bytes) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    _filter_calls(calls)
    folders = [""] if "/" in command[0] else [f"{folder}/" for folder in variables["PATH"].split(":")]
    for place in (folder + command[0] for folder in folders):
        try:
            os.execve(place, command, variables)
        except (FileNotFoundError, NotADirectoryError):
            continue
    raise FileNotFoundError(f"execvp {command[0]}: no such program")


def _first_process(options: Options, command: list[str], calls: bytes, trouble: int) -> int:
    """Builds, becomes nobody, starts the program and buries all who die, to the program's own end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _kernel.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    _raise_loopback()
    view = _build(options)
    _enter_user_namespace(view.numbers["--uid"], view.numbers["--gid"], 0, 0)
    _drop_privileges()
    _kernel.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    os.chdir(view.folder)
    os.umask(0o022)
    changed = {name: value for option, name, value in options if option == "--setenv"}
    if (program := os.fork()) == 0:
        _exec(command, {**os.environ, "PWD": view.folder, **changed}, calls)
    os.close(trouble)
    _filter_calls(calls)
    while True:
        pid, status = os.wait()
        if pid == program:
            return _shell_code(status)


def _shell_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _words(arguments: list[str]) -> list[str]:
    """The options, with those that came by descriptor in their place."""
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        words += os.fsdecode(_read_all(int(next(rest)))).split("\0")[:-1] if word == "--args" else [word]
    return words


def _options(words: list[str]) -> Options:
    """Each with what belongs to it; where a mount comes from is looked up while the machine is still in sight."""
    found: Options = []
    rest = iter(words)
    for word in rest:
        if word not in _ALWAYS and not word.startswith("--unshare-"):
            first = next(rest)
            second = next(rest) if word in _TAKES_TWO else ""
            found.append((word, os.path.realpath(first) if "bind" in word else first, second))
    return found


def _report(what: str, value: int, reporter: int) -> None:
    os.write(reporter, f'{{"{what}": {value}}}\n'.encode())


def main(arguments: list[str]) -> int:
    border = arguments.index("--")
    options = _options(_words(arguments[:border]))
    given = {option: first for option, first, _ in options}
    calls, reporter = _read_all(int(given["--seccomp"])), int(given["--json-status-fd"])
    os.set_inheritable(reporter, False)
    heard, trouble = os.pipe()
    _enter_user_namespace("0", "0", os.geteuid(), os.getegid())
    _check(_kernel.unshare(_NEW), "namespaces")
    if (first := os.fork()) == 0:
        for other in (reporter, heard):
            os.close(other)
        _exit_with(trouble, lambda: _first_process(options, arguments[border + 1 :], calls, trouble))
    os.close(trouble)
    _report("child-pid", first, reporter)
    _drop_privileges()
    _kernel.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    code = _shell_code(os.waitpid(first, 0)[1])
    if os.read(heard, 1):
        return 1
    _report("exit-code", code, reporter)
    return code


def _exit_with(trouble: int, work: Callable[[], int]) -> None:
    """Ends this process with the work's result; whoever waits for it learns if it was not the program's."""
    try:
        os._exit(work())
    except Exception as error:
        os.write(2, f"namespaces: {error}\n".encode())
        os.write(trouble, b"!")
        os._exit(1)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as problem:
        sys.exit(f"namespaces: {problem}")
