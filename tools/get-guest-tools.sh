#!/usr/bin/env bash
# Gets what plugins in C, JavaScript and Python are built with, into a cache: nothing is installed system-wide. Prints
# the folder; what is in it is named by these settings of `foreshorten plugin build`:
#
#   guest=$(tools/get-guest-tools.sh)
#   export FORESHORTEN_CLANG=$guest/bin/clang                                      # C
#   export FORESHORTEN_COMPONENTIZE_QJS=$guest/js/node_modules/.bin/componentize-qjs  # JavaScript
#   export FORESHORTEN_COMPONENTIZE_PY=$guest/py/bin/componentize-py               # Python
#
# x86-64 Debian 12 or newer, with Node.js 18 and Python 3.10 or newer; only apt-get update needs root. About 80 MB of
# download, 30 seconds. The versions below are those that the templates of new plugins pin: keep them the same.
set -euo pipefail
QJS=0.4.5
PY=0.25.1
GUEST="${XDG_CACHE_HOME:-$HOME/.cache}/foreshorten/guest-tools-$QJS-$PY"
if [ -e "$GUEST/ready" ]; then
  echo "$GUEST"
  exit 0
fi
rm -rf "$GUEST"
mkdir -p "$GUEST/bin" "$GUEST/debs" "$GUEST/js"

# Which packages of a name have which version moves, so it is asked for: the newest clang that there is.
clang() (
  cd "$GUEST/debs"
  apt-get update -qq || apt-get update -qq
  n=$(apt-cache dump 2>/dev/null | sed -nE 's/^Package: clang-([0-9]+)$/\1/p' | sort -n | tail -1)
  # The linker is rustup's rust-lld, or that of lld.
  apt-get download -qq "clang-$n" "libclang-cpp$n" "libclang-common-$n-dev" "libllvm$n" 2> >(grep -v unsandboxed >&2)
  for deb in *.deb; do dpkg -x "$deb" "$GUEST"; done
  cd "$GUEST"
  rm -rf debs
  cat >"$GUEST/bin/clang" <<END
#!/bin/sh
LD_LIBRARY_PATH="$GUEST/usr/lib/x86_64-linux-gnu\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "$GUEST/usr/bin/clang-$n" "\$@"
END
  chmod +x "$GUEST/bin/clang"
  "$GUEST/bin/clang" --print-targets | grep -q wasm32
)

{
  clang
  npm install --prefix "$GUEST/js" --no-audit --no-fund --loglevel=error "componentize-qjs@$QJS"
  python3 -m venv "$GUEST/py"
  "$GUEST/py/bin/pip" install --quiet --disable-pip-version-check "componentize-py==$PY"
} >&2
: >"$GUEST/ready"
echo "$GUEST"
