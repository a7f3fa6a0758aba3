#!/usr/bin/env bash
# Prints the command that runs QEMU for bare Arm machines, and gets it first where there is none:
#
#   "$(tools/get-qemu-arm.sh PREFIX)" -machine mps2-an386 …
#
# An installed qemu-system-arm is taken as it is. Otherwise, as root, the package is installed, unless apt-get would have
# to remove something for it; then it and the libraries it needs are unpacked into PREFIX (about 16 MB of download),
# and nothing is installed.
set -euo pipefail
PREFIX=${1:?usage: get-qemu-arm.sh PREFIX}
if command -v qemu-system-arm; then exit; fi
mkdir -p "$PREFIX"
PREFIX=$(cd "$PREFIX" && pwd)
RUN="$PREFIX/bin/qemu-system-arm"
if [ -x "$RUN" ]; then echo "$RUN"; exit; fi
apt-get update -qq >&2 || apt-get update -qq >&2
plan=$(apt-get install -s --no-install-recommends qemu-system-arm)
if [ "$(id -u)" = 0 ] && ! grep -q '^Remv' <<<"$plan"; then
  apt-get install -y -qq --no-install-recommends qemu-system-arm >&2
  command -v qemu-system-arm
  exit
fi
mkdir -p "$PREFIX/debs" "$PREFIX/bin"
cd "$PREFIX/debs"
# What apt-get would install, the tools for disk images aside: those are what would remove something.
mapfile -t packages < <(sed -nE 's/^Inst ([^ ]+) .*/\1/p' <<<"$plan" | grep -Ev '^qemu-(utils|block-extra)$')
apt-get download -qq "${packages[@]}" 2> >(grep -v unsandboxed >&2)
for deb in *.deb; do dpkg -x "$deb" "$PREFIX"; done
cd "$PREFIX"
rm -rf debs
cat > bin/qemu-system-arm <<EOF
#!/bin/sh
LD_LIBRARY_PATH="$PREFIX/usr/lib/x86_64-linux-gnu:$PREFIX/lib/x86_64-linux-gnu\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
exec "$PREFIX/usr/bin/qemu-system-arm" -L "$PREFIX/usr/share/qemu" "\$@"
EOF
chmod +x bin/qemu-system-arm
echo "$RUN"
