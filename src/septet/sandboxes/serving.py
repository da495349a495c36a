"""Runs a server inside a sandbox, asks it once, shows the answer and ends it.

Run as `python -c SOURCE PORT PATH SECONDS COMMAND…`: prints `HTTP STATUS REASON` and the beginning of the answer,
and ends with 0 when the server answered with less than 500; with the server's own code if it ended before, with
1 if it never answered. A port that is open but speaks something else is an answer too.
"""

import http.client
import subprocess
import sys
import time

_PAUSE, _PATIENCE, _SHOWN = 0.05, 5.0, 2000


def asked(port: int, path: str) -> tuple[bool, str] | None:
    """Whether the answer is a good one, and what it says; None where nobody listens yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(_SHOWN).decode("utf-8", "replace")
    except ConnectionRefusedError:
        return None
    except (http.client.HTTPException, OSError) as error:
        return True, f"port {port} is open but does not speak HTTP ({type(error).__name__})"
    finally:
        connection.close()
    return answer.status < 500, f"HTTP {answer.status} {answer.reason}\n{body}"


def main() -> int:
    port, path, seconds, *command = sys.argv[1:]
    server = subprocess.Popen(command)
    end = time.monotonic() + float(seconds)
    answer = None
    while answer is None and server.poll() is None and time.monotonic() < end:
        answer = asked(int(port), path)
        time.sleep(_PAUSE)
    code = server.poll()
    server.terminate()
    try:
        server.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
    if answer is not None:
        print(answer[1])  # noqa: T201  it is what this program is for
        return 0 if answer[0] else 1
    if code is not None:
        sys.stderr.write(f"the server ended before it answered on port {port}\n")
        return code or 1
    sys.stderr.write(f"nobody answered on port {port} within {seconds} seconds\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
