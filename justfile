# One-word tasks. `just check` is what CI runs.

# Where Python may not keep what it compiles, each process of the tests compiles pytest, the libraries and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

# Everything that must hold before a change lands.
check: static tests

# What needs no test to run, side by side; meanwhile the tests are compiled.
[parallel]
static: lint types contracts compiled

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

# The tests imported once: the workers of `tests`, which begin together, find them and their libraries compiled.
compiled:
    @pytest -p no:xdist --collect-only -qq >/dev/null || true # `tests` tells what cannot be imported

# The tests that fit into minutes. A file's tests stay on one worker, for they share servers and chats; three workers
# more than two processors have, for many of them wait. Which files begin is in tests/conftest.py.
tests *args:
    pytest -n 5 --dist loadfile --no-loadscope-reorder -m 'not torture' {{args}}

# The page after a change: its types from the Python types, form, check, build. Needs `npm ci` in web/.
page:
    python scripts/events_ts.py
    npm --prefix web run format
    npm --prefix web run check
    npm --prefix web run build

# The documentation site, in build/site: its generated pages, its build, its links.
docs:
    python scripts/reference.py
    python scripts/docs_site.py

# A release: checks, wheel, sdist, SBOM, changelog, version, tag. First with --dry-run.
release version *args:
    python scripts/release.py {{version}} {{args}}

# The long suites, by hand; results are written down in docs/.
torture *args:
    pytest --timeout 3600 -m torture {{args}}

# A seeded sample of mutants of our own code and the tests that can notice them, in a checkout of its own (`--seed N
# --count 60`; again, and it goes on). `python scripts/touched.py` first keeps which tests call what.
mutants *args:
    python scripts/mutants.py {{args}}

# What fixed runs take, beside what is kept; `--write` keeps it. The tests hold it.
counts *args:
    python scripts/counts.py {{args}}

# Figures for docs/measurements, by hand: beside other libraries, whose environments are built outside of the
# repository (`just bench --rows many --peers aiohttp,septet` takes a row of some), and of starting.
bench *args:
    python bench/compare.py {{args}}
    python bench/startup.py

# Half an hour of mixed chats, kills and page watchers, after which nothing may have grown or be left over.
soak *args:
    python bench/soak.py {{args}}

# Work on real repositories (pinned packages of the index, in a cache outside of this one), by hand.
repos *args:
    python bench/repos.py {{args}}
