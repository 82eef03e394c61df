#!/bin/sh
# What a checkout is told once, by `make env`: running a notebook changes nothing that git holds.
set -e
cd "$(dirname "$0")/.."
if [ -e .git ]; then
    git config filter.notebook.clean ".venv/bin/python -S scripts/strip_notebooks.py --clean"
    git config diff.notebook.textconv ".venv/bin/python -S scripts/strip_notebooks.py --text"
fi
mkdir -p .venv/etc/jupyter
ln -sf ../../../scripts/jupyter_server_config.py .venv/etc/jupyter/jupyter_server_config.py
