"""The autocoder's context object: documented keys computed from the state, and templates filled with them.

initial    epoch, name, goal, project_dir, project_path
reasoned   … and the results of a reasoning step: the tree, the code, validation, tests, the run of main
acting     … and the available actions
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import RunFinished, ToolCalled
from septet.domain.files import is_test
from septet.domain.plans import plan_text
from septet.domain.state import State
from septet.errors import BadUsage
from septet.team.briefing import head_and_tail

INITIAL = ("epoch", "name", "goal", "project_dir", "project_path")
REASONED = (
    *INITIAL,
    "reasoning",
    "file_count",
    "filetree",
    "filetree_formatted",
    "python_files",
    "main_success",
    "main_error",
    "backup",
    "project_code",
    "project_code_formatted",
)
ACTING = (*REASONED, "available_actions", "available_action_names", "action_name")
STAGES = {"initial": INITIAL, "reasoned": REASONED, "acting": ACTING}
ALIASES = {
    "project_name": "name",
    "files": "filetree",
    "file_tree": "filetree",
    "code": "project_code_formatted",
}
SMALL_PROJECT = 48_000
"""Characters of code that are all in the prompt."""
MAX_CODE_LENGTH = 24_000
"""Characters of a larger project's code up to which files are added that only the output of a run names."""
MAX_PATHS = 1_000
"""Paths in a prompt."""
PASSED_LINE = re.compile(r"^PASSED .*\n?", re.MULTILINE)
"""What pytest says of a test that is nobody's concern."""
IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class ProjectFile(Value, omit_defaults=False):
    """A file of the project with validation and test results; None if a result does not apply."""

    rel_path: str
    file_path: str
    content: str
    validation_success: bool = True
    validation_error: str | None = None
    test_success: bool | None = None
    test_error: str | None = None
    test_output: str | None = None


class ActionOffer(Value, omit_defaults=False):
    name: str
    description: str


class Context(Value, omit_defaults=False):
    """The input of an action. The context that it returns may differ in `project_code` only."""

    epoch: int
    name: str
    goal: str
    project_dir: str
    project_path: str
    reasoning: str = ""
    file_count: int = 0
    filetree: tuple[str, ...] = ()
    filetree_formatted: str = ""
    python_files: tuple[str, ...] = ()
    main_success: bool | None = None
    main_error: str | None = None
    backup: str = ""
    project_code: tuple[ProjectFile, ...] = ()
    project_code_formatted: str = ""
    available_actions: tuple[ActionOffer, ...] = ()
    available_action_names: tuple[str, ...] = ()
    action_name: str = ""
    run: str = ""
    """The command that starts the program; not one of the documented keys."""

    def __getitem__(self, key: str) -> object:
        name = ALIASES.get(key, key)
        if name not in ACTING:
            raise KeyError(key)
        return getattr(self, name)

    def at(self, stage: str = "acting") -> dict[str, object]:
        """The keys of a stage as JSON-compatible values."""
        return {key: msgspec.to_builtins(self[key]) for key in STAGES[stage]}

    def file(self, path: str) -> str | None:
        """The text of a file; None if it does not exist."""
        return next((file.content for file in self.project_code if file.rel_path == path), None)

    def with_file(self, path: str, text: str) -> "Context":
        """The context after that file is written."""
        place = f"{self.project_path}/{path}"
        written = ProjectFile(rel_path=path, file_path=place, content=text)
        others = [file for file in self.project_code if file.rel_path != path]
        return replace(self, project_code=tuple(sorted([*others, written], key=lambda file: file.rel_path)))

    def without_file(self, path: str) -> "Context":
        """The context after that file is deleted."""
        return replace(self, project_code=tuple(file for file in self.project_code if file.rel_path != path))


def compose_prompt(template: str, context: Context | Mapping[str, object]) -> str:
    """Fill every {{key}} of the template from the context. Raises BadUsage for an unknown key."""

    def fill(found: re.Match[str]) -> str:
        key = found[1]
        try:
            value = context[key]
        except KeyError:
            raise BadUsage(
                f"the prompt names '{key}', which the context does not have", "see septet.Context"
            ) from None
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    return PLACEHOLDER.sub(fill, template)


def context_of(
    state: State, sources: Mapping[str, str], faults: Mapping[str, str], offers: Sequence[ActionOffer] = ()
) -> Context:
    """Build the context object from the state; `faults` has the validation error of each invalid file."""
    code = tuple(project_file(state, path, sources, faults) for path in sorted(sources))
    main = next((run for run in reversed(state.work.runs) if run.purpose == "run"), None)
    return Context(
        epoch=state.floor.turn_counts.get("runner", 0),
        name=state.chat,
        goal=state.goal,
        project_dir=state.workspace.rstrip("/").rsplit("/", 1)[-1],
        project_path=state.workspace,
        reasoning=f"{state.work.diagnosis.what}: {state.work.diagnosis.why}" if state.work.diagnosis else "",
        file_count=len(sources),
        filetree=tuple(sorted(sources)),
        filetree_formatted=tree_text(sorted(sources)) if len(sources) <= MAX_PATHS else folder_map(state),
        python_files=tuple(path for path in sorted(sources) if path.endswith(".py")),
        main_success=main.result.succeeded if main else None,
        main_error=run_failure_text(main) if main else None,
        backup=backup_of(state),
        project_code=code,
        project_code_formatted=code_text(code_in_prompt(state, code), main, len(code)),
        run=state.plan.current.run if state.plan.current else "",
        available_actions=tuple(offers),
        available_action_names=tuple(offer.name for offer in offers),
    )


def backup_of(state: State) -> str:
    """The blob that lists what can be gone back to: the newest snapshot, else the base."""
    if state.work.snapshots:
        return state.work.snapshots[-1].manifest
    return state.base.survey.manifest if state.base is not None else ""


def project_file(
    state: State, path: str, sources: Mapping[str, str], faults: Mapping[str, str]
) -> ProjectFile:
    tests = next((run for run in state.work.runs if run.purpose == "tests"), None)
    suite = path if is_test(path) else test_file_of(path, sources)
    report = tests.result.report.about(suite) if tests and suite else None
    judged = report is not None and bool(report.passed or report.failed)
    failed = report.failed if report else ()
    return ProjectFile(
        rel_path=path,
        file_path=f"{state.workspace}/{path}",
        content=sources[path],
        validation_success=path not in faults,
        validation_error=faults.get(path),
        test_success=not failed if judged else None,
        test_error=", ".join(failed) or None,
        test_output=head_and_tail(tests.result.stdout) if tests and judged else None,
    )


def test_file_of(path: str, sources: Mapping[str, str]) -> str:
    """The test file of a source file, found by name."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    wanted = {f"test_{stem}.py", f"{stem}_test.py"}
    return next((one for one in sorted(sources) if one.rsplit("/", 1)[-1] in wanted), "")


def run_failure_text(run: RunFinished) -> str | None:
    result = run.result
    if result.succeeded:
        return None
    return "\n".join(filter(None, [result.ending, head_and_tail(result.stderr or result.stdout).strip()]))


def tree_text(paths: Sequence[str]) -> str:
    """Format paths as an indented tree; folders end with a slash."""
    lines: list[str] = []
    seen: set[str] = set()
    for path in paths:
        *folders, name = path.split("/")
        for depth in range(len(folders)):
            folder = "/".join(folders[: depth + 1])
            if folder not in seen:
                seen.add(folder)
                lines.append("  " * depth + folders[depth] + "/")
        lines.append("  " * len(folders) + name)
    return "\n".join(lines) or "(no files)"


def folder_map(state: State) -> str:
    """The folder tree with two levels, for a project with too many files to list."""
    return state.base.survey.map if state.base else "(too many files to be listed)"


def code_in_prompt(state: State, code: Sequence[ProjectFile]) -> list[ProjectFile]:
    """All files of a small project; of a larger one those that the situation is about, as far as there is room."""
    if sum(len(file.content) for file in code) <= SMALL_PROJECT:
        return list(code)
    wanted = [file for file in code if is_mentioned(file.rel_path, situation_text(state))]
    imported = {module for file in wanted for module in IMPORT.findall(file.content)}
    ours = {file.path for file in state.work.files} - state.work.person_files
    near = [file for file in code if module_of(file.rel_path) in imported or file.rel_path in ours]
    printed = [file for file in code if is_mentioned(file.rel_path, failure_output(state))]
    chosen: dict[str, ProjectFile] = {}
    for files, most in ((wanted, SMALL_PROJECT), (near, SMALL_PROJECT), (printed, MAX_CODE_LENGTH)):
        for file in files:
            if sum(len(one.content) for one in chosen.values()) + len(file.content) <= most:
                chosen[file.rel_path] = file
    return [chosen[path] for path in sorted(chosen)]


def situation_text(state: State) -> str:
    """What is wanted, what is wrong, and what was said and tried last."""
    plan = plan_text(state.plan.current) if state.plan.current else ""
    why = state.work.diagnosis.why if state.work.diagnosis else ""
    said = [remark.text for remark in state.talk.remarks]
    now = {call.id for call in (state.floor.turn.calls if state.floor.turn else ())}  # a turn has one prompt
    calls = [one for one in state.talk.messages if isinstance(one, ToolCalled) and one.id not in now]
    said += [one.arguments for one in calls][-1:]
    return "\n".join([state.goal, plan, why, *said])


def failure_output(state: State) -> str:
    """What the runs that failed have printed."""
    failing = [run.result for run in state.work.runs if not run.result.succeeded]
    return "\n".join(head_and_tail(PASSED_LINE.sub("", result.stdout)) + result.stderr for result in failing)


def is_mentioned(path: str, words: str) -> bool:
    """Whether the text names the file by its path or as a module."""
    module = module_of(path)
    return path in words or ("." in module and module in words)


def module_of(path: str) -> str:
    """The module name of a Python file; any other path is returned as it is."""
    if not path.endswith(".py"):
        return path
    inner = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    return inner.replace("/", ".")


def code_text(code: Sequence[ProjectFile], main: RunFinished | None, count: int) -> str:
    """Format files for a prompt with line numbers and results; `count` is the number of files in the project."""
    parts = [file_text(file) for file in code] or ["(no files)" if not count else "(none is shown)"]
    if len(code) < count:
        parts.append(
            f"{count - len(code)} more files are not shown here: an action that names one brings it next time."
        )
    if main is not None:
        parts.append(main_text(main))
    return "\n\n".join(parts)


def main_text(main: RunFinished) -> str:
    """Describe the run of the program: its mode, its output and the files that it left."""
    how = {"screen": " on a screen", "server": " as a server"}.get(main.mode, "")
    ending = run_failure_text(main) or f"succeeded\n{head_and_tail(main.result.stdout)}".rstrip()
    made = [
        f"{one.path} ({pluralize(one.size, 'byte')})" for one in main.result.changes if one.kind != "deleted"
    ]
    left = f"\nit left {', '.join(made)}" if made else ""
    return f"`{main.command}`{how}: {ending}{left}"


def file_text(file: ProjectFile) -> str:
    lines = [f"{number:>4}| {line}" for number, line in enumerate(file.content.split("\n"), start=1)]
    facts = [
        f"validation: {file.validation_error or 'ok'}" if file.rel_path.endswith(".py") else "",
        {None: "", True: "tests: pass", False: f"tests: FAIL ({file.test_error})"}[file.test_success],
    ]
    numbered = "\n".join(lines[:-1] if file.content.endswith("\n") else lines)
    return "\n".join([f"## {file.rel_path}", *filter(None, facts), "```", numbered, "```"])
