"""Contexts of small projects."""

from septet.team.context import Context


def project(**files: str) -> Context:
    """A context with these files; `main_py` stands for main.py."""
    context = Context(epoch=1, name="p", goal="g", project_dir="p", project_path="/p")
    for name, text in files.items():
        context = context.with_file(name.replace("_py", ".py"), text)
    paths = tuple(file.rel_path for file in context.project_code)
    return Context(
        epoch=1,
        name="p",
        goal="g",
        project_dir="p",
        project_path="/p",
        project_code=context.project_code,
        filetree=paths,
    )


def files(context: Context) -> dict[str, str]:
    return {file.rel_path: file.content for file in context.project_code}
