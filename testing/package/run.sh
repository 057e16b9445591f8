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
gzip -dc "$root/usr/share/man/man5/sovia.toml.5.gz" | grep -q 'buffer' || fail "sovia.toml(5) does not know the keys"

# What reads each says so: the manual's formatters as Debian's checks call them, and the shells. Those that are not here are named.
unread=()
pages=0
for page in "$root"/usr/share/man/man?/*.gz; do
    # Under its own name: the section is in it.
    plain=$scratch/$(basename "$page" .gz)
    gzip -dc "$page" >"$plain"
    if command -v man >/dev/null; then
        LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$plain" 2>"$scratch/said" >/dev/null ||
            fail "man does not take ${page##*/}: $(cat "$scratch/said")"
        [ ! -s "$scratch/said" ] || fail "${page##*/}: $(cat "$scratch/said")"
    fi
    if command -v mandoc >/dev/null; then
        # Pages have no date: they are the same whenever they are made.
        mandoc -Tlint -Wwarning "$plain" >"$scratch/said" 2>&1 || true
        ! grep -qv 'missing date' "$scratch/said" || fail "${page##*/}: $(cat "$scratch/said")"
    fi
    pages=$((pages + 1))
done
for formatter in man mandoc; do command -v $formatter >/dev/null || unread+=("$formatter"); done
for shell in bash fish zsh; do
    case $shell in
        bash) script=bash-completion/completions/sovia ;;
        fish) script=fish/vendor_completions.d/sovia.fish ;;
        zsh) script=zsh/vendor-completions/_sovia ;;
    esac
    [ -s "$root/usr/share/$script" ] || fail "no completions for $shell"
    command -v $shell >/dev/null || { unread+=("$shell") && continue; }
    "$shell" -n "$root/usr/share/$script" 2>"$scratch/said" || fail "$shell does not take $script: $(cat "$scratch/said")"
    [ ! -s "$scratch/said" ] || fail "$script: $(cat "$scratch/said")"
done
say "manual, completions" "$pages pages; bash, fish, zsh${unread[*]:+; not here to read them: ${unread[*]}}"

(cd "$root" && md5sum --quiet -c var/lib/dpkg/info/sovia.md5sums) || fail "files differ from their sums"
PATH=$PATH:/usr/sbin:/sbin "${into[@]}" --purge sovia >"$scratch/said" 2>&1 || { cat "$scratch/said"; fail "cannot be removed"; }
after=$(cd "$root" && find . -path ./var/lib/dpkg -prune -o -print | sort)
before=$(grep -v '^./var/lib/dpkg/' <<<"$before" | grep -v '^./var/lib/dpkg$')
[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after") || true; fail "something is left"; }
say removed "nothing is left"
