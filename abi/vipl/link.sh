#!/bin/sh
# Links libvipl.so from libvipl.a under the version map, and fills in vipl.pc; both go beside the static library.
# (Not a cdylib: rustc brings a version script of its own, and no linker takes two.)
# Usage: link.sh [--profile release|dev] [--prefix DIR]     after `cargo build -p vipl`
# DIR, /usr/local unless told, is where vipl.pc will say that DIR/include/vipl.h and DIR/lib/libvipl.so are.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
profile=release
prefix=/usr/local
while [ $# -gt 0 ]; do
    case $1 in
        --profile) profile=${2:?} ;;
        --prefix) prefix=${2:?} ;;
        *) sed -n '2,5s/^# \?//p' "$0" >&2; exit 2 ;;
    esac
    shift 2
done
case $profile in
    dev) folder=debug ;;
    *) folder=$profile ;;
esac
target=${CARGO_TARGET_DIR:-$root/target}
case $target in
    /*) ;;
    *) target=$root/$target ;;
esac
out=$target/$folder
library=$out/libvipl.a
[ -e "$library" ] || { echo "link.sh: no $library; cargo build -p vipl makes it" >&2; exit 1; }

# nodelete: a NIC has threads, and they would outlive the code that they run.
# Made under another name, so that a program that has the old one mapped keeps it whole.
made=$(mktemp "$out/libvipl.so.XXXXXX")
trap 'rm -f "$made"' EXIT
cc -shared -o "$made" \
    -Wl,-soname,libvipl.so.1 -Wl,--version-script="$here/vipl.map" \
    -Wl,--whole-archive "$library" -Wl,--no-whole-archive -Wl,--gc-sections \
    -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--no-undefined \
    -lgcc_s -lpthread -ldl -lm -lc
chmod 755 "$made"
mv -f "$made" "$out/libvipl.so.1.0"
trap - EXIT
ln -sf libvipl.so.1.0 "$out/libvipl.so.1"
ln -sf libvipl.so.1 "$out/libvipl.so"

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$prefix/lib|" -e "s|@VERSION@|$version|" "$here/vipl.pc.in" >"$out/vipl.pc"
echo "linked: $out/libvipl.so"
