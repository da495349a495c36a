# One-word tasks. `just check` is what CI runs.

# Everything that must hold before a change lands.
check: lint types contracts tests

# Form, spelling and unused or missing dependencies.
lint:
    ruff format --check
    ruff check
    deptry src
    typos

# One type gate, strict.
types:
    pyright --threads 2

# Layers, purity, no cycles, adapters named in one place.
contracts:
    lint-imports

# The tests that fit into minutes. A file's tests stay on one worker, for they share servers and chats; three workers
# more than two processors have, for many of them wait.
tests *args:
    pytest -n 5 --dist loadfile -m 'not torture' {{args}}

# The page after a change: its types from the Python types, form, check, build. Needs `npm ci` in web/.
page:
    python scripts/events_ts.py
    npm --prefix web run format
    npm --prefix web run check
    npm --prefix web run build

# The long suites, by hand; results are written down in docs/.
torture *args:
    pytest --timeout 3600 -m torture {{args}}

# What fixed runs take, beside what is kept; `--write` keeps it. The tests hold it.
counts *args:
    python scripts/counts.py {{args}}

# Figures for docs/, by hand.
bench:
    python bench/fold.py
    python bench/startup.py

# Work on real repositories (pinned packages of the index, in a cache outside of this one), by hand.
repos *args:
    python bench/repos.py {{args}}
