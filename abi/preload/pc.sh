#!/bin/sh
# Prints sovia.pc for PREFIX, where PREFIX/include/sovia.h and PREFIX/lib/libsovia.so are.
# Usage: pc.sh PREFIX
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?usage: pc.sh PREFIX}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$prefix/lib|" -e "s|@VERSION@|$version|" "$here/sovia.pc.in"
