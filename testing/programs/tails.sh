#!/usr/bin/env bash
# How long round trips of 64 bytes take where many threads share the CPUs, over TCP and under sovia in turn: the client has so many threads with a connection each,
# and the server as many, or one that waits for all of them in a set of epoll. Once with each end on a CPU of its own, and once where the kernel puts them.
# Needs a C compiler, and two CPUs.
set -euo pipefail
threads=${1:-50} seconds=${2:-2}
if [ $# -gt 2 ] || [[ ! $threads =~ ^[1-9][0-9]{0,2}$ ]] || [[ ! $seconds =~ ^[1-9][0-9]?$ ]]; then
    echo "usage: [SOVIA=PATH] tails.sh [THREADS, up to 999] [SECONDS, up to 99]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
sovia=${SOVIA:-$here/../../target/release/sovia}
if [ ! -x "$sovia" ]; then
    echo "tails.sh: no $sovia: build it, or set SOVIA" >&2
    exit 1
fi
folder=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
    rm -rf "$folder"
}
trap stop EXIT
${CC:-cc} -O2 -pthread -o "$folder/tails" "$here/tails.c"

measure() {
    local server_at=() client_at=() with=()
    if [ "$2" = apart ]; then server_at=(taskset -c 0) client_at=(taskset -c 1); fi
    if [ "$3" = sovia ]; then with=("$sovia" run --); fi
    mkfifo "$folder/port"
    "${server_at[@]}" "${with[@]}" "$folder/tails" server "$1" >"$folder/port" &
    server=$!
    read -r port <"$folder/port"
    rm "$folder/port"
    printf '%-8s%-7s%-7s' "$1" "$2" "$3"
    "${client_at[@]}" "${with[@]}" "$folder/tails" client "$port" "$threads" "$seconds"
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    server=
}
for kind in threads epoll; do
    for place in apart free; do
        for way in tcp sovia; do measure "$kind" "$place" "$way"; done
    done
done
