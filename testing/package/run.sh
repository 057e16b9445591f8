#!/usr/bin/env bash
# Makes the Debian package, installs it into a folder, uses what is installed, and removes it again: nothing may be left.
# Usage: run.sh [--profile dev]     after cargo build --release --workspace, or without --release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

package=$(cargo --quiet xtask deb "$@" | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

say() { printf '  %-24s %s\n' "$1" "$2"; }
fail() { echo "package: $*" >&2; exit 1; }

mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root"/etc
touch "$root"/var/lib/dpkg/{status,available}
# Its own log, and no scripts of the host: what it depends on is not in there.
into=(dpkg --root="$root" --log="$scratch/dpkg.log" --force-depends --force-not-root --force-script-chrootless)
before=$(cd "$root" && find . | sort)
PATH=$PATH:/usr/sbin:/sbin "${into[@]}" --install "$package" >"$scratch/said" 2>&1 || { cat "$scratch/said"; fail "cannot be installed"; }
say installed "$(cd "$root" && find usr -type f | wc -l) files of $(basename "$package")"

sovia=$root/usr/bin/sovia
env -i PATH="$PATH" "$sovia" --version >/dev/null || fail "sovia does not start"
mapped=$(env -i PATH="$PATH" SOVIA_CONFIG= "$sovia" run sh -c 'grep -c libsovia.so /proc/self/maps')
[ "$mapped" -gt 0 ] || fail "libsovia.so is not loaded"
say "sovia run" "loads $(env -i PATH="$PATH" SOVIA_CONFIG= "$sovia" run sh -c "grep -o '/usr/lib/libsovia.so' /proc/self/maps | head -n 1")"
env -i PATH="$PATH" SOVIA_CONFIG="$root/usr/share/doc/sovia/examples/sovia.toml" "$sovia" explain sh :443 |
    grep -q 'when-possible' || fail "the example of a configuration is wrong"

export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
for library in vipl sovia sov; do
    printf '#include <%s.h>\nint main(void) { return 0; }\n' "$library" >"$scratch/$library.c"
    # shellcheck disable=SC2046 # words
    cc -o "$scratch/$library" "$scratch/$library.c" -Wl,--no-as-needed $(pkg-config --cflags --libs "$library") ||
        fail "nothing can be built against $library"
    LD_LIBRARY_PATH=$root/usr/lib "$scratch/$library" || fail "what is built against $library does not run"
done
say headers "vipl.h, sovia.h, sov.h with pkg-config"

for page in sovia sovia-run sovia-check sovia-stat sovia-explain; do
    gzip -dc "$root/usr/share/man/man1/$page.1.gz" | grep -q '^\.TH' || fail "no manual page $page"
done
for page in $(for command in check stat explain run bench vi; do "$sovia" "$command" --help; done | grep -o 'docs/[a-z-]*\.md' | sort -u); do
    [ -f "$root/usr/share/doc/sovia/$page" ] || fail "--help names $page, which is not there"
done
bash -n "$root/usr/share/bash-completion/completions/sovia"
say "manual, completions" "$(find "$root/usr/share/man" -type f | wc -l) pages; bash, fish, zsh"

(cd "$root" && md5sum --quiet -c var/lib/dpkg/info/sovia.md5sums) || fail "files differ from their sums"
PATH=$PATH:/usr/sbin:/sbin "${into[@]}" --purge sovia >"$scratch/said" 2>&1 || { cat "$scratch/said"; fail "cannot be removed"; }
after=$(cd "$root" && find . -path ./var/lib/dpkg -prune -o -print | sort)
before=$(grep -v '^./var/lib/dpkg/' <<<"$before" | grep -v '^./var/lib/dpkg$')
[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after") || true; fail "something is left"; }
say removed "nothing is left"
