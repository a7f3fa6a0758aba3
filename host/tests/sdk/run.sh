#!/usr/bin/env bash
# Real SDK loops: run.sh BIN [--turns N] [--protocol chat|chat-reused-ids|messages|all] [--window N] [--seed N]
# BIN is the foreshorten program. FORESHORTEN_SIMULATOR, if set, is the simulator's: the SDKs are tried against it too. The SDKs go into a virtual environment under ${TMPDIR:-/tmp}, made once for each state of requirements.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${1:?usage: run.sh BIN [--turns N] [--protocol P]}
shift
venv="${TMPDIR:-/tmp}/foreshorten-sdk-$(sha256sum "$here/requirements.txt" | cut -c1-12)"
if [ ! -e "$venv/ready" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    touch "$venv/ready"
fi
export PYTHONDONTWRITEBYTECODE=1
(cd "$here" && "$venv/bin/python" -m unittest --quiet test_provider)
"$venv/bin/python" "$here/loop.py" "$bin" "$@"
if [ -n "${FORESHORTEN_SIMULATOR:-}" ]; then
    "$venv/bin/python" "$here/simulator.py" "$FORESHORTEN_SIMULATOR"
fi
