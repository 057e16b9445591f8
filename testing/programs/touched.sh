#!/usr/bin/env bash
# What libsovia.so costs nginx, alone under it, for each request that wrk makes, as the processor sees it: instructions, lines of 64 bytes of code, and pages, by what they
# belong to. No noise: callgrind counts. Of two libraries the figures can be compared, of two machines as well.
#   touched.sh [--kept] [LIBRARY...]     (default: libsovia.so of the release build); --kept: connections stay
# Needs nginx, wrk and valgrind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
header=(-H 'Connection: close')
if [ "${1:-}" = --kept ]; then
    header=()
    shift
fi
libraries=("$@")
if [ $# = 0 ]; then
    # Where it was only needed, cargo leaves it in deps.
    release=${CARGO_TARGET_DIR:-$here/../../target}/release
    newest=$release/libsovia.so
    if [ "$release/deps/libsovia.so" -nt "$newest" ]; then newest=$release/deps/libsovia.so; fi
    libraries=("$newest")
fi
for library in "${libraries[@]}"; do
    [ -f "$library" ] || { echo "touched.sh: there is no $library" >&2; exit 2; }
done
# shellcheck source=single.sh
source "$here/single.sh"
need nginx wrk valgrind callgrind_control
take_port 19113
mkdir "$folder/www"
head -c 1024 /dev/urandom >"$folder/www/kilobyte"
chmod -R go+rX "$folder"
sed -e "s|@DIR@|$folder|; s|@PORT@|$port|; s|@USER@|root|" "$here/cases/nginx.conf" >"$folder/nginx.conf"
echo 'master_process off; daemon off;' >>"$folder/nginx.conf"

load() { wrk -t 1 -c 4 -d "$1" "${header[@]}" "http://127.0.0.1:$port/kilobyte" | sed -n 's/ *\([0-9]*\) requests in.*/\1/p'; }

# Of what ran for at least half of the requests. With `--dump-instr` a line of costs has an address, absolute or by how much it follows, a line and a count.
table() {
    awk -v requests="$2" '
        function hex(text,    n, at) { for (at = 3; at <= length(text); at++) n = n * 16 + index("0123456789abcdef", substr(text, at, 1)) - 1; return n }
        function name(text,    key) { key = text; sub(/^c?ob=/, "", key); text = key; sub(/ .*/, "", key); if (text ~ / /) { sub(/^[^ ]* /, "", text); sub(/.*\//, "", text); names[key] = text }; return names[key] }
        /^ob=/ { object = name($0); next }
        /^cob=/ { name($0); next }
        /^calls=/ { called = 1; next }
        /^(0x|\+|-|\*)/ {
            if ($1 ~ /^0x/) address = hex($1); else if ($1 != "*") address += $1
            if (called) { called = 0; next }
            count[object "/" address] += $3
        }
        END {
            for (key in count) {
                if (count[key] * 2 < requests) continue
                object = key; sub(/\/.*/, "", object); sub(/.*\//, "", key)
                # It knows the name of what lies in .text only.
                if (object == "???") object = "libsovia.so"
                all[object] += count[object "/" key] + count["???/" key]
                if (!seen[object, "line", int(key / 64)]++) lines[object]++
                if (!seen[object, "page", int(key / 4096)]++) pages[object]++
            }
            for (object in all) printf "  %-14s %7.0f instructions %5d lines %4d pages\n", object, all[object] / requests, lines[object], pages[object]
        }' "$1" | sort
}

for library in "${libraries[@]}"; do
    LD_PRELOAD=$library valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file="$folder/counts" -q nginx -c "$folder/nginx.conf" 2>/dev/null &
    server=$!
    until listens; do
        kill -0 "$server" 2>/dev/null || { echo "touched.sh: nginx does not start at port $port" >&2; exit 1; }
    done
    load 1 >/dev/null
    callgrind_control -z "$server" >/dev/null 2>&1
    requests=$(load 3)
    callgrind_control -d "$server" >/dev/null 2>&1
    kill -QUIT "$server"
    wait "$server" || true
    server=
    [ "${requests:-0}" -gt 0 ] || { echo "touched.sh: no request was answered" >&2; exit 1; }
    echo "$library, of one in $requests requests:"
    table "$folder/counts.1" "$requests"
done
