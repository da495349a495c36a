"""A commit on a branch, made without a checkout: by git's plumbing and an index of its own."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from septet.common.temporary import temporary_folder
from septet.domain.base import FileState
from septet.errors import BadUsage

MODES = {"file": "100644", "program": "100755", "link": "120000"}
NOTHING = "0" * 40
"""What a branch must point to that shall be new."""

Files = Mapping[str, tuple[FileState, bytes]]


def commit_to_branch(top: Path, name: str, parent: str, message: str, files: Files) -> str:
    """The new commit: its parent's files, but for these; a state without a sha256 is a file that goes."""
    with temporary_folder("index") as made:
        git = BranchGit(top, made / "index", name)
        if git.run("cat-file", "-e", f"{parent}^{{commit}}").returncode:
            cause = (
                f"the commit {parent[:12]} that the work began on is gone: there is no commit to branch from"
            )
            raise BadUsage(cause, "deliver without --branch")
        git("check-ref-format", "--branch", name)
        git("read-tree", parent)
        for path, (state, content) in files.items():
            if state.sha256:
                oid = git("hash-object", "-w", "--stdin", "--path", path, given=content)
                git("update-index", "--add", "--cacheinfo", f"{MODES[state.kind]},{oid},{path}")
            else:
                git("update-index", "--force-remove", path)
        commit = git("commit-tree", git("write-tree"), "-p", parent, given=message.encode())
        git("update-ref", f"refs/heads/{name}", commit, NOTHING)
        return commit


class BranchGit:
    """The person's git in the person's repository, with another index."""

    def __init__(self, top: Path, index: Path, branch: str) -> None:
        self.top = top
        self.branch = branch
        self.surroundings = {**os.environ, "GIT_INDEX_FILE": str(index)}

    def run(self, *words: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            ["git", *words],
            cwd=self.top,
            env=self.surroundings,
            input=given,
            capture_output=True,
            check=False,
        )

    def __call__(self, *words: str, given: bytes = b"") -> str:
        run = self.run(*words, given=given)
        if run.returncode:
            said = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise BadUsage(f"git could not commit to the branch '{self.branch}' ({said})", "name another one")
        return run.stdout.decode().strip()
