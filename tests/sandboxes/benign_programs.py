"""Ordinary programs: what people's code does every day. Each proves its own result and then says `fine`."""
# ruff: noqa: E501  these are programs, kept as dense as a table

PROGRAMS: dict[str, str] = {
    "threads": """
import threading
found = []
workers = [threading.Thread(target=found.append, args=(n,)) for n in range(20)]
for worker in workers: worker.start()
for worker in workers: worker.join()
assert sorted(found) == list(range(20))
""",
    "thread_pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool: assert list(pool.map(str, range(50))) == [str(n) for n in range(50)]
""",
    "process_pool": """
from concurrent.futures import ProcessPoolExecutor
def square(n): return n * n
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool: assert list(pool.map(square, range(10))) == [n * n for n in range(10)]
""",
    "multiprocessing_spawn_and_queue": """
import multiprocessing
def work(queue): queue.put(multiprocessing.current_process().name)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,), name="worker")
    process.start(); assert queue.get(timeout=20) == "worker"; process.join(); assert process.exitcode == 0
""",
    "shared_memory": """
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=1 << 20)
block.buf[:5] = b"hello"
other = shared_memory.SharedMemory(name=block.name)
assert bytes(other.buf[:5]) == b"hello"
other.close(); block.close(); block.unlink()
""",
    "semaphores_and_locks": """
import multiprocessing
lock, number = multiprocessing.Lock(), multiprocessing.Value("i", 0)
def add():
    for _ in range(100):
        with lock: number.value += 1
if __name__ == "__main__":
    workers = [multiprocessing.Process(target=add) for _ in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    assert number.value == 300
""",
    "sqlite": """
import sqlite3
with sqlite3.connect("data.db") as base:
    base.execute("pragma journal_mode=wal"); base.execute("create table t(x)")
    base.executemany("insert into t values (?)", [(n,) for n in range(1000)])
assert sqlite3.connect("data.db").execute("select sum(x) from t").fetchone() == (499500,)
""",
    "subprocesses": """
import subprocess, sys
assert subprocess.run([sys.executable, "-c", "print(6*7)"], capture_output=True, text=True).stdout == "42\\n"
assert subprocess.check_output("echo a | tr a b", shell=True, text=True) == "b\\n"
""",
    "process_groups_and_signals": """
import os, signal, subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
os.killpg(child.pid, signal.SIGTERM)
assert child.wait() == -signal.SIGTERM
""",
    "signal_handlers_and_alarm": """
import signal, time
heard = []
signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.05)
while not heard: time.sleep(0.01)
""",
    "web_server_and_client": """
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
assert urllib.request.urlopen(f"http://localhost:{server.server_port}/program.py").status == 200
server.shutdown()
""",
    "asyncio_server": """
import asyncio
async def main():
    async def echo(reader, writer): writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(echo, "localhost", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    writer.write(b"hello\\n"); assert await reader.readline() == b"hello\\n"; writer.close(); server.close()
asyncio.run(main())
""",
    "asyncio_subprocess": """
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    assert (await process.communicate())[0] == b"hi\\n"
asyncio.run(main())
""",
    "unix_sockets_and_udp": """
import socket
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
server = socket.socket(socket.AF_UNIX); server.bind("sock"); server.listen(); socket.socket(socket.AF_UNIX).connect("sock")
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"y", u.getsockname()); assert u.recv(1) == b"y"
""",
    "unicode_files": """
import pathlib
for name in ("naïve.txt", "文件.txt", "🙂.txt", "with space", "tab\\tname"):
    pathlib.Path(name).write_text("grüße 你好", encoding="utf-8")
    assert pathlib.Path(name).read_text() == "grüße 你好"
print("äöü 漢字 🙂")
""",
    "temporary_files_and_home": """
import pathlib, tempfile, os
with tempfile.TemporaryDirectory() as folder: pathlib.Path(folder, "x").write_text("x")
with tempfile.NamedTemporaryFile() as file: file.write(b"x" * 1_000_000)
config = pathlib.Path.home() / ".config" / "tool"; config.mkdir(parents=True); (config / "c").write_text("x")
assert os.path.expanduser("~") == os.environ["HOME"]
""",
    "who_and_where": """
import getpass, grp, os, platform, pwd, socket
assert getpass.getuser() == "septet" and pwd.getpwuid(os.getuid()).pw_name == "septet" and grp.getgrgid(os.getgid())
assert socket.gethostbyname("localhost") == "127.0.0.1" and socket.gethostname() and platform.platform() and os.cpu_count()
socket.gethostbyname(socket.gethostname())
""",
    "streams_by_name": """
open("/dev/stdout", "w").write("named\\n"); open("/dev/stderr", "w").write("named\\n"); open("/dev/stdin").read()
import subprocess; subprocess.run("echo more > /dev/stderr; cat < /dev/null > /dev/null", shell=True, check=True)
assert len(open("/dev/urandom", "rb").read(8)) == 8
""",
    "pseudo_terminal": """
import os, pty
pid, terminal = pty.fork()
if pid == 0: os.execvp("sh", ["sh", "-c", "tty; echo inside"])
text = b""
try:
    while piece := os.read(terminal, 1000): text += piece
except OSError: pass
assert b"/dev/pts/" in text and b"inside" in text, text
os.waitpid(pid, 0)
""",
    "links_modes_and_locks": """
import fcntl, os, pathlib, shutil
pathlib.Path("a").write_text("x"); os.symlink("a", "b"); os.link("a", "c"); os.chmod("a", 0o755)
assert os.stat("a").st_mode & 0o777 == 0o755 and os.access("a", os.X_OK) and pathlib.Path("b").read_text() == "x"
fcntl.flock(open("a"), fcntl.LOCK_EX); os.utime("a", (1, 1)); shutil.copytree(".", "copy", ignore=lambda *_: ["copy"]); shutil.rmtree("copy")
""",
    "mapped_files_and_memory_files": """
import mmap, os
with open("m", "w+b") as file:
    file.truncate(1 << 20)
    with mmap.mmap(file.fileno(), 0) as view: view[:3] = b"abc"
assert open("m", "rb").read(3) == b"abc"
""",
    "archives_and_compression": """
import bz2, gzip, lzma, tarfile, zipfile, zlib, pathlib
pathlib.Path("f").write_text("x" * 1000)
with tarfile.open("t.tar.gz", "w:gz") as archive: archive.add("f")
with tarfile.open("t.tar.gz") as archive: archive.extractall("out")
with zipfile.ZipFile("z.zip", "w") as archive: archive.write("f")
assert pathlib.Path("out/f").exists() and lzma.decompress(lzma.compress(b"x")) == bz2.decompress(bz2.compress(b"x"))
""",
    "data_and_dates": """
import csv, datetime, decimal, json, locale, random, statistics, time, zoneinfo
csv.writer(open("d.csv", "w")).writerows([[1, 2], [3, 4]]); assert list(csv.reader(open("d.csv")))[1] == ["3", "4"]
assert json.loads(json.dumps({"a": [1, None]})) and datetime.datetime.now(zoneinfo.ZoneInfo("UTC")).year > 2000
assert time.localtime() and locale.setlocale(locale.LC_ALL, "C.UTF-8") and statistics.mean([1, 3]) == 2
""",
    "certificates_and_hashes": """
import hashlib, secrets, ssl, uuid
assert ssl.create_default_context() and hashlib.sha256(b"").hexdigest() and secrets.token_hex(4) and uuid.uuid4()
""",
    "foreign_functions": """
import ctypes, ctypes.util
assert ctypes.CDLL(None).abs(-3) == 3 and ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
""",
    "many_files": """
import os, pathlib
for n in range(1500): pathlib.Path(f"f{n}").write_text(str(n))
assert len(os.listdir()) >= 1500
for n in range(1500): os.remove(f"f{n}")
""",
    "much_output": """
for n in range(20000): print("line", n)
""",
    "much_memory": """
blocks = [bytearray(b"x" * (50 << 20)) for _ in range(6)]
assert sum(map(len, blocks)) == 300 << 20
""",
    "modules_and_packages": """
import importlib, os, pathlib, sys
os.makedirs("pkg"); pathlib.Path("pkg/__init__.py").write_text("from .inner import value\\n"); pathlib.Path("pkg/inner.py").write_text("value = 3\\n")
importlib.invalidate_caches(); sys.path.insert(0, ".")
import pkg; assert pkg.value == 3
""",
    "tests_by_unittest_and_doctest": """
import doctest, sys, unittest
def double(x):
    '''
    >>> double(2)
    4
    '''
    return 2 * x
class Tests(unittest.TestCase):
    def test(self): self.assertEqual(double(3), 6)
assert doctest.testmod().failed == 0 and unittest.main(argv=["x"], exit=False).result.wasSuccessful()
""",
    "virtual_environment": """
import subprocess, sys
subprocess.run([sys.executable, "-m", "venv", "--without-pip", "env"], check=True)
assert subprocess.check_output(["env/bin/python", "-c", "import sys; print(sys.prefix)"], text=True).strip().endswith("env")
""",
    "debugger_and_trace": """
import faulthandler, logging, pdb, timeit, tracemalloc, traceback
faulthandler.enable(); tracemalloc.start(); logging.basicConfig(filename="log"); logging.warning("x")
assert timeit.timeit("1+1", number=10) > 0 and "x" in open("log").read()
""",
    "curses_and_readline": """
import curses, readline
curses.setupterm("xterm", 1)
""",
    "shell_script": """
import pathlib, subprocess
pathlib.Path("s.sh").write_text("#!/bin/bash\\nset -euo pipefail\\nfor i in 1 2 3; do echo $i; done | sort -r | head -1\\n"); pathlib.Path("s.sh").chmod(0o755)
assert subprocess.check_output(["./s.sh"], text=True) == "3\\n"
""",
}

WITH_TOOLS: dict[str, tuple[str, str]] = {
    "git": (
        "git",
        """
import subprocess
def git(*words): return subprocess.check_output(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], text=True)
git("init", "-q"); git("add", "program.py"); git("commit", "-qm", "first"); assert "first" in git("log", "--oneline")
""",
    ),
    "compiler": (
        "gcc",
        """
import pathlib, subprocess
pathlib.Path("a.c").write_text('#include <stdio.h>\\nint main(){puts("compiled");}')
subprocess.run(["gcc", "-o", "a.out", "a.c"], check=True); assert subprocess.check_output(["./a.out"]) == b"compiled\\n"
""",
    ),
    "node": (
        "node",
        """
import subprocess
assert subprocess.check_output(["node", "-e", "setTimeout(() => console.log([1,2].map(x => x*2)), 10)"], text=True) == "[ 2, 4 ]\\n"
""",
    ),
    "perl": (
        "perl",
        """
import subprocess
assert subprocess.check_output(["perl", "-e", "print 6*7"]) == b"42"
""",
    ),
}
