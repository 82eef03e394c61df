#!/usr/bin/env bash
# The tests that a commit must pass, on the other Pythons that are supported, each in an environment of its own
# (2.3 GB).
set -euo pipefail
cd "$(dirname "$0")/.."

used="$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
for version in 3.11 3.12 3.13; do
  [ "$version" = "$used" ] && continue
  # a pyenv shim is there for versions that are not switched on, too, and only complains
  for python in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
    if "$python" -c 'import venv' >/dev/null 2>&1; then
      make VENV=".venv-$version" PYTHON="$python" test
      continue 2
    fi
  done
  echo "Not checked on Python $version: it is not installed."
done
