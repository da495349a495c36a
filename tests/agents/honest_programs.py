"""Honest programs of many kinds, each with a test that means it: none may be doubted."""

from collections.abc import Mapping
from textwrap import dedent


def pair(program: str, test: str) -> Mapping[str, str]:
    return {"app.py": dedent(program).lstrip(), "test_app.py": dedent(test).lstrip()}


HONEST: Mapping[str, Mapping[str, str]] = {
    "function": pair(
        """
        def add(a, b):
            return a + b
        """,
        """
        from app import add

        def test_it():
            assert add(2, 3) == 5
        """,
    ),
    "predicate": pair(
        """
        def is_odd(n):
            return n % 2 == 1
        """,
        """
        from app import is_odd

        def test_it():
            assert is_odd(3)
            assert not is_odd(4)
        """,
    ),
    "parametrised": pair(
        """
        def square(n):
            return n * n
        """,
        """
        import pytest
        from app import square

        @pytest.mark.parametrize(("n", "wanted"), [(0, 0), (2, 4), (-3, 9)])
        def test_it(n, wanted):
            assert square(n) == wanted
        """,
    ),
    "property": pair(
        """
        def ordered(items):
            return sorted(items)
        """,
        """
        import random
        from app import ordered

        def test_it():
            source = random.Random(7)
            for _ in range(20):
                items = [source.randrange(99) for _ in range(9)]
                found = ordered(items)
                assert all(a <= b for a, b in zip(found, found[1:]))
                assert len(found) == len(items)
        """,
    ),
    "inverse": pair(
        """
        def encode(text):
            return text[::-1].upper()

        def decode(text):
            return text[::-1].lower()
        """,
        """
        from app import decode, encode

        def test_it():
            assert decode(encode('abc')) == 'abc'
        """,
    ),
    "unittest": pair(
        """
        def shout(text):
            return text.upper() + '!'
        """,
        """
        import unittest
        from app import shout

        class TestShout(unittest.TestCase):
            def test_it(self):
                self.assertEqual(shout("a"), "A!")
        """,
    ),
    "coroutine": pair(
        """
        import asyncio

        async def later(n):
            await asyncio.sleep(0)
            return n + 1
        """,
        """
        import asyncio
        from app import later

        def test_it():
            assert asyncio.run(later(1)) == 2
        """,
    ),
    "doctest": pair(
        """
        def halve(n):
            '''Give the half.

            >>> halve(4)
            2.0
            >>> halve(3)
            1.5
            '''
            return n / 2
        """,
        """
        import doctest
        import app

        def test_it():
            found = doctest.testmod(app)
            assert found.attempted == 2
            assert found.failed == 0
        """,
    ),
    "async test of unittest": pair(
        """
        import asyncio

        async def both(first, second):
            return await asyncio.gather(asyncio.sleep(0, first), asyncio.sleep(0, second))
        """,
        """
        import unittest
        from app import both

        class TestBoth(unittest.IsolatedAsyncioTestCase):
            async def test_it(self):
                self.assertEqual(await both(2, 1), [2, 1])
        """,
    ),
    "drawn picture": pair(
        """
        import struct
        import zlib

        def chunk(kind, body):
            check = struct.pack(">I", zlib.crc32(kind + body))
            return struct.pack(">I", len(body)) + kind + body + check

        def draw(path, values):
            wide, high = len(values), max(values)
            rows = [bytes(255 * (value > row) for value in values) for row in reversed(range(high))]
            head = struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)
            pixels = zlib.compress(b"".join(b"\\0" + row for row in rows))
            with open(path, "wb") as file:
                file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head))
                file.write(chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
        """,
        """
        import zlib
        from app import draw

        def test_it(tmp_path):
            draw(tmp_path / "bars.png", [1, 3, 2])
            found = (tmp_path / "bars.png").read_bytes()
            assert found[16:24] == bytes([0, 0, 0, 3, 0, 0, 0, 3])
            start = found.index(b"IDAT") + 4
            pixels = zlib.decompress(found[start:found.index(b"IEND") - 8])
            assert pixels == bytes([0, 0, 255, 0, 0, 0, 255, 255, 0, 255, 255, 255])
        """,
    ),
    "fixture": pair(
        """
        class Stack:
            def __init__(self):
                self.items = []

            def push(self, item):
                self.items.append(item)

            def pop(self):
                if not self.items:
                    raise IndexError("empty")
                return self.items.pop()
        """,
        """
        import pytest
        from app import Stack

        @pytest.fixture
        def stack():
            made = Stack()
            made.push(1)
            return made

        def test_it(stack):
            assert stack.pop() == 1
            with pytest.raises(IndexError):
                stack.pop()
        """,
    ),
    "explicit exception": pair(
        """
        def root(n):
            if n < 0:
                raise ValueError('negative')
            return n ** 0.5
        """,
        """
        import pytest
        from app import root

        def test_it():
            with pytest.raises(ValueError):
                root(-1)
        """,
    ),
    "natural exception": pair(
        """
        def number(text):
            return int(text)
        """,
        """
        import pytest
        from app import number

        def test_it():
            with pytest.raises(ValueError):
                number('x')
        """,
    ),
    "exception of a constructor": pair(
        """
        class Age:
            def __init__(self, n):
                if not 0 <= n < 150:
                    raise ValueError(n)
                self.n = n
        """,
        """
        import pytest
        from app import Age

        def test_it():
            with pytest.raises(ValueError):
                Age(-1)
        """,
    ),
    "printed": pair(
        """
        def greet(name):
            print(f'hello, {name}')
        """,
        """
        from app import greet

        def test_it(capsys):
            greet('you')
            assert capsys.readouterr().out == 'hello, you\\n'
        """,
    ),
    "main with arguments": pair(
        """
        import argparse

        def main(argv=None):
            parser = argparse.ArgumentParser()
            parser.add_argument("numbers", type=int, nargs="+")
            print(sum(parser.parse_args(argv).numbers))

        if __name__ == "__main__":
            main()
        """,
        """
        from app import main

        def test_it(capsys):
            main(['1', '2'])
            assert '3' in capsys.readouterr().out
        """,
    ),
    "process": pair(
        """
        import sys

        def main():
            print(len(sys.stdin.read().split()))

        if __name__ == '__main__':
            main()
        """,
        """
        import subprocess
        import sys

        def test_it():
            done = subprocess.run([sys.executable, "app.py"], input="a b c", capture_output=True, text=True)
            assert done.stdout.strip() == "3"
        """,
    ),
    "flat script": pair(
        """
        import sys

        total = 0
        for word in sys.argv[1:]:
            total += int(word)
        print(total)
        """,
        """
        import subprocess
        import sys

        def test_it():
            done = subprocess.run([sys.executable, "app.py", "2", "3"], capture_output=True, text=True)
            assert done.stdout == "5\\n"
        """,
    ),
    "file": pair(
        """
        from pathlib import Path

        def save(path, lines):
            Path(path).write_text('\\n'.join(lines) + '\\n')
        """,
        """
        from app import save

        def test_it(tmp_path):
            save(tmp_path / 'x', ['a', 'b'])
            assert (tmp_path / 'x').read_text() == 'a\\nb\\n'
        """,
    ),
    "csv": pair(
        """
        import csv

        def total(path):
            with open(path) as file:
                return sum(float(row['n']) for row in csv.DictReader(file))
        """,
        """
        from app import total

        def test_it(tmp_path):
            (tmp_path / 'x').write_text('n\\n1\\n2.5\\n')
            assert total(tmp_path / 'x') == 3.5
        """,
    ),
    "dataclass": pair(
        """
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Point:
            x: int
            y: int

            def moved(self, dx: int) -> "Point":
                return Point(self.x + dx, self.y)
        """,
        """
        from app import Point

        def test_it():
            assert Point(1, 2).moved(3) == Point(4, 2)
        """,
    ),
    "property of a class": pair(
        """
        class Box:
            def __init__(self, w, h):
                self.w, self.h = w, h

            @property
            def area(self):
                return self.w * self.h
        """,
        """
        from app import Box

        def test_it():
            assert Box(2, 3).area == 6
        """,
    ),
    "operator": pair(
        """
        class Money:
            def __init__(self, n):
                self.n = n

            def __add__(self, other):
                return Money(self.n + other.n)
        """,
        """
        from app import Money

        def test_it():
            assert (Money(1) + Money(2)).n == 3
        """,
    ),
    "equality": pair(
        """
        class Name:
            def __init__(self, text):
                self.text = text.strip().lower()

            def __eq__(self, other):
                return self.text == other.text
        """,
        """
        from app import Name

        def test_it():
            assert Name(' A') == Name('a')
            assert Name('b') != Name('a')
        """,
    ),
    "generator": pair(
        """
        def fibonacci(n):
            a, b = 0, 1
            for _ in range(n):
                yield a
                a, b = b, a + b
        """,
        """
        from app import fibonacci

        def test_it():
            assert list(fibonacci(6)) == [0, 1, 1, 2, 3, 5]
        """,
    ),
    "context manager": pair(
        """
        from contextlib import contextmanager

        LOG = []

        @contextmanager
        def logged(name):
            LOG.append(f'begin {name}')
            yield
            LOG.append(f'end {name}')
        """,
        """
        import app

        def test_it():
            with app.logged('x'):
                pass
            assert app.LOG == ['begin x', 'end x']
        """,
    ),
    "decorator": pair(
        """
        import functools

        def twice(f):
            @functools.wraps(f)
            def again(*args):
                return f(f(*args))
            return again
        """,
        """
        from app import twice

        @twice
        def inc(n):
            return n + 1

        def test_it():
            assert inc(1) == 3
        """,
    ),
    "recursion": pair(
        """
        def factorial(n):
            return 1 if n < 2 else n * factorial(n - 1)
        """,
        """
        from app import factorial

        def test_it():
            assert factorial(5) == 120
        """,
    ),
    "state": pair(
        """
        COUNTS = {}

        def count(word):
            COUNTS[word] = COUNTS.get(word, 0) + 1
        """,
        """
        import app

        def test_it():
            app.count('a')
            app.count('a')
            assert app.COUNTS['a'] == 2
        """,
    ),
    "logging": pair(
        """
        import logging

        def work():
            logging.getLogger('app').warning('low disk')
        """,
        """
        from app import work

        def test_it(caplog):
            work()
            assert 'low disk' in caplog.text
        """,
    ),
    "environment": pair(
        """
        import os

        def home():
            return os.environ.get('APP_HOME', '/srv')
        """,
        """
        from app import home

        def test_it(monkeypatch):
            monkeypatch.setenv('APP_HOME', '/x')
            assert home() == '/x'
        """,
    ),
    "database": pair(
        """
        import sqlite3

        def open_notes():
            notes = sqlite3.connect(":memory:")
            notes.execute("create table notes (text)")
            return notes

        def add(notes, text):
            notes.execute("insert into notes values (?)", (text,))

        def find(notes, word):
            rows = notes.execute("select text from notes where text like ?", (f"%{word}%",))
            return [text for (text,) in rows]
        """,
        """
        import app

        def test_it():
            notes = app.open_notes()
            app.add(notes, 'buy milk')
            assert app.find(notes, 'milk') == ['buy milk']
        """,
    ),
    "thread": pair(
        """
        import threading

        def run_all(jobs):
            done = []
            threads = [threading.Thread(target=lambda j=j: done.append(j())) for j in jobs]
            [t.start() for t in threads]
            [t.join() for t in threads]
            return sorted(done)
        """,
        """
        from app import run_all

        def test_it():
            assert run_all([lambda: 2, lambda: 1]) == [1, 2]
        """,
    ),
    "server": pair(
        """
        from http.server import BaseHTTPRequestHandler

        class Hello(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"hello")

            def log_message(self, *args):
                pass
        """,
        """
        import threading
        import urllib.request
        from http.server import HTTPServer
        from app import Hello

        def test_it():
            server = HTTPServer(("127.0.0.1", 0), Hello)
            threading.Thread(target=server.handle_request, daemon=True).start()
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", timeout=5) as answer:
                assert answer.read() == b"hello"
        """,
    ),
    "floats": pair(
        """
        def mean(values):
            return sum(values) / len(values)
        """,
        """
        import pytest
        from app import mean

        def test_it():
            assert mean([1, 2, 4]) == pytest.approx(2.3333, abs=1e-3)
        """,
    ),
    "regular expression": pair(
        """
        import re

        def words(text):
            return re.findall(r'[a-z]+', text.lower())
        """,
        """
        from app import words

        def test_it():
            assert words('A b, c') == ['a', 'b', 'c']
        """,
    ),
    "package": {
        "shop/__init__.py": "from shop.prices import total\n",
        "shop/prices.py": "def total(items):\n    return sum(price * n for price, n in items)\n",
        "tests/test_app.py": "from shop import total\n\n\ndef test_it():\n    assert total([(2, 3), (1, 1)]) == 7\n",
    },
    "enum": pair(
        """
        from enum import Enum

        class Light(Enum):
            RED = 1
            GREEN = 2

            def next(self):
                return Light.GREEN if self is Light.RED else Light.RED
        """,
        """
        from app import Light

        def test_it():
            assert Light.RED.next() is Light.GREEN
        """,
    ),
    "signatures": pair(
        """
        import inspect
        from typing import get_type_hints

        def checked(function):
            hints, signature = get_type_hints(function), inspect.signature(function)

            def call(*args, **kwargs):
                for name, value in signature.bind(*args, **kwargs).arguments.items():
                    if not isinstance(value, hints.get(name, object)):
                        raise TypeError(f"{name} must be {hints[name].__name__}")
                return function(*args, **kwargs)

            return call
        """,
        """
        import pytest
        from app import checked

        @checked
        def double(n: int) -> int:
            return n * 2

        def test_it():
            assert double(4) == 8
            with pytest.raises(TypeError, match="n must be int"):
                double("x")
        """,
    ),
    "registry of plugins": {
        "app.py": "import importlib\nimport sys\n\nREGISTRY = {}\n\n\ndef register(name):\n"
        "    def keep(function):\n        REGISTRY[name] = function\n        return function\n"
        "    return keep\n\n\ndef load(module):\n    if module not in sys.modules:\n"
        "        importlib.import_module(module)\n    return sorted(REGISTRY)\n",
        "extras.py": "from app import register\n\n\n@register('shout')\ndef shout(text):\n    return text.upper()\n",
        "test_app.py": "from app import REGISTRY, load\n\n\ndef test_it():\n    assert load('extras') == ['shout']\n"
        "    assert REGISTRY['shout']('a') == 'A'\n",
    },
    "equal to a text": pair(
        """
        class Header:
            def __init__(self, text):
                self.text = text

            def __eq__(self, other):
                if isinstance(other, Header):
                    other = other.text
                return isinstance(other, str) and self.text.lower() == other.lower()

            def __hash__(self):
                return hash(self.text.lower())
        """,
        """
        from app import Header

        def test_it():
            assert Header("Accept") == "accept"
            assert {Header("A"): 1}[Header("a")] == 1
            assert Header("A") != "B"
        """,
    ),
    "equal to numbers": pair(
        """
        class Hours(int):
            def __eq__(self, other):
                return isinstance(other, int) and int(self) % 24 == int(other) % 24

            def __hash__(self):
                return hash(int(self) % 24)

            def later(self, n):
                return Hours((int(self) + n) % 24)
        """,
        """
        from app import Hours

        def test_it():
            assert Hours(20).later(6) == 2
            assert Hours(20).later(6) == 26
            assert not Hours(3) == 4
        """,
    ),
    "cache in a file": pair(
        """
        import json
        import time
        from pathlib import Path

        def cached(path, key, make, seconds=60):
            kept = json.loads(Path(path).read_text()) if Path(path).exists() else {}
            if key in kept and time.time() - kept[key][0] < seconds:
                return kept[key][1]
            kept[key] = [time.time(), make()]
            Path(path).write_text(json.dumps(kept))
            return kept[key][1]
        """,
        """
        from app import cached

        def test_it(tmp_path):
            made = iter([1, 2])
            assert cached(tmp_path / "c", "k", lambda: next(made)) == 1
            assert cached(tmp_path / "c", "k", lambda: next(made)) == 1
            assert cached(tmp_path / "c", "k", lambda: next(made), seconds=0) == 2
        """,
    ),
    "logging configured": pair(
        """
        import logging.config

        def configure(level):
            logging.config.dictConfig({
                "version": 1,
                "disable_existing_loggers": False,
                "loggers": {__name__: {"level": level}},
            })
            return logging.getLogger(__name__)
        """,
        """
        import logging
        from app import configure

        def test_it():
            assert configure("ERROR").isEnabledFor(logging.ERROR)
            assert not configure("ERROR").isEnabledFor(logging.INFO)
            assert configure("DEBUG").isEnabledFor(logging.INFO)
        """,
    ),
    "mocks and monkeypatch": pair(
        """
        import json
        import urllib.request

        def weather(town):
            with urllib.request.urlopen(f"http://localhost/{town}") as answer:
                return json.load(answer)["degrees"]
        """,
        """
        import io
        from unittest import mock
        import app

        def test_it(monkeypatch):
            asked = mock.Mock(return_value=io.BytesIO(b'{"degrees": 21}'))
            monkeypatch.setattr(app.urllib.request, "urlopen", asked)
            assert app.weather("Bonn") == 21
            asked.assert_called_once_with("http://localhost/Bonn")
        """,
    ),
    "context variables": pair(
        """
        import asyncio
        from contextvars import ContextVar

        USER = ContextVar("USER", default="nobody")

        async def greet(name):
            USER.set(name)
            await asyncio.sleep(0)
            return f"hello, {USER.get()}"
        """,
        """
        import asyncio
        from app import USER, greet

        async def both():
            return await asyncio.gather(greet("Ann"), greet("Bob"))

        def test_it():
            assert asyncio.run(both()) == ["hello, Ann", "hello, Bob"]
            assert USER.get() == "nobody"
        """,
    ),
    "asynchronous server": pair(
        """
        import asyncio

        async def answer(reader, writer):
            line = await reader.readline()
            writer.write(line.strip().upper() + b"\\n")
            await writer.drain()
            writer.close()

        async def serve():
            return await asyncio.start_server(answer, "127.0.0.1", 0)
        """,
        """
        import asyncio
        from app import serve

        async def ask(text):
            server = await serve()
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(text)
            found = await reader.readline()
            writer.close()
            server.close()
            return found

        def test_it():
            assert asyncio.run(ask(b"hello\\n")) == b"HELLO\\n"
        """,
    ),
    "subcommands": pair(
        """
        import argparse

        def main(argv=None):
            parser = argparse.ArgumentParser(prog="app")
            commands = parser.add_subparsers(dest="command", required=True)
            adding = commands.add_parser("add")
            adding.add_argument("numbers", type=int, nargs="+")
            given = parser.parse_args(argv)
            print(sum(given.numbers))
            return 0

        if __name__ == "__main__":
            raise SystemExit(main())
        """,
        """
        import subprocess
        import sys
        import app

        def test_it(capsys):
            assert app.main(["add", "2", "3"]) == 0
            assert capsys.readouterr().out == "5\\n"
            done = subprocess.run([sys.executable, "app.py", "add", "4", "5"], capture_output=True, text=True)
            assert (done.returncode, done.stdout) == (0, "9\\n")
            assert subprocess.run([sys.executable, "app.py"], capture_output=True).returncode == 2
        """,
    ),
    "settings of a person": pair(
        """
        import os
        from pathlib import Path

        def settings_path():
            folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
            return Path(folder) / "app.ini"

        def read_settings():
            path = settings_path()
            if not path.exists():
                return {}
            return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
        """,
        """
        from app import read_settings

        def test_it(tmp_path, monkeypatch):
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
            assert read_settings() == {}
            (tmp_path / "app.ini").write_text("colour=red\\n")
            assert read_settings() == {"colour": "red"}
        """,
    ),
    "a table": pair(
        """
        NUMERALS = {1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC",
                    50: "L", 40: "XL", 10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}

        def roman(n):
            found = ""
            for value, sign in NUMERALS.items():
                found += sign * (n // value)
                n %= value
            return found
        """,
        """
        from app import roman

        def test_it():
            assert roman(5) == "V"
            assert roman(1994) == "MCMXCIV"
        """,
    ),
    "translated texts": pair(
        """
        import builtins

        TEXTS = {"yes": "ja"}

        def translate(text):
            return TEXTS.get(text, text)

        builtins._ = translate

        def ask():
            return _("yes") + "?"
        """,
        """
        from app import ask

        def test_it():
            assert ask() == "ja?"
        """,
    ),
}
