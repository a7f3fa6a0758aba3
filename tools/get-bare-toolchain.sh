#!/usr/bin/env bash
# Unpacks Debian's second Rust compiler (the rustc-web packages, with library sources) into PREFIX, for machines
# where `rustup target add` cannot be used. Nothing is installed system-wide and rustup is not touched; only
# apt-get update needs root. PREFIX/bin/cargo-bare is rustup's cargo with that compiler and rustup's rust-lld:
#
#   tools/get-bare-toolchain.sh PREFIX
#   PREFIX/bin/cargo-bare build --target thumbv7em-none-eabi -Zbuild-std=core,alloc
#
# About 130 MB of download, 480 MB on disk, 20 seconds. x86-64 Debian 12 or newer.
set -euo pipefail
PREFIX=${1:?usage: get-bare-toolchain.sh PREFIX}
[ -e "$PREFIX/.done" ] && exit 0
rm -rf "$PREFIX"
mkdir -p "$PREFIX/debs" "$PREFIX/bin"
PREFIX=$(cd "$PREFIX" && pwd)
cd "$PREFIX/debs"
apt-get update -qq || apt-get update -qq

# The packages' names hold versions that move with security updates, so they are asked for, not written here.
dep() {
  apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces "$1" |
    sed -nE "s/^ *Depends: ($2)\$/\1/p" | head -1
}
STD=$(dep libstd-rust-web-dev 'libstd-rust-web-[0-9.]+')
LLVM=$(dep "$STD" 'libllvm[0-9]+')
apt-get download -qq rustc-web libstd-rust-web-dev "$STD" rust-web-src "$LLVM" 2> >(grep -v unsandboxed >&2)
for deb in *.deb; do
  case $deb in
    rust-web-src_*) # only the library: 70 MB of 340
      dpkg-deb --fsys-tarfile "$deb" |
        tar -x -C "$PREFIX" --wildcards './usr/src/rustc-*/library' './usr/lib/rustlib/src*' ;;
    *) dpkg -x "$deb" "$PREFIX" ;;
  esac
done
cd "$PREFIX"
rm -rf debs

cat > bin/rustc-bare <<EOF
#!/bin/sh
LD_LIBRARY_PATH="$PREFIX/usr/lib/x86_64-linux-gnu:$PREFIX/lib/x86_64-linux-gnu\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
exec "$PREFIX/usr/bin/rustc" "\$@"
EOF
cat > bin/cargo-bare <<EOF
#!/bin/sh
LLD="\$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld"
export RUSTC="$PREFIX/bin/rustc-bare" RUSTC_BOOTSTRAP=1
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="\$LLD" CARGO_TARGET_THUMBV7EM_NONE_EABI_LINKER="\$LLD"
exec cargo "\$@"
EOF
chmod +x bin/rustc-bare bin/cargo-bare
bin/rustc-bare -V
: > .done
