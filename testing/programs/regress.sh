#!/usr/bin/env bash
# What PostgreSQL's own regression tests (217 scripts, up to twenty psql at a time) cost over TCP and under sovia, in turn: their time from beginning to end and the CPU
# time of the whole host, both divided by the time in PostgreSQL's own code, by `perf`. That takes out how fast the host was in that run, by which the times alone differ by a sixth.
#
# SOURCE is a tree of PostgreSQL's source, configured with a prefix, built and installed (`./configure --prefix=DIR --without-icu`; `make`, `make install`, the same in `contrib/spi`
# and `src/test/regress`). As root say AS=USER whom both the tree and the prefix let in: PostgreSQL does not run as root. Nothing else should run meanwhile. Needs perf (linux-perf).
set -euo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ] || ! [[ ${2:-5} =~ ^[1-9][0-9]?$ ]]; then
    echo "usage: [AS=USER] [SOVIA=FILE] [CONFIG=FILE] [PORT=N] regress.sh SOURCE [ROUNDS, 1 to 99]" >&2
    exit 2
fi
source=$(realpath -- "$1")
rounds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
sovia=$(realpath -- "${SOVIA:-$here/../../target/release/sovia}")
port=${PORT:-19132}
if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]]; then
    echo "regress.sh: PORT=$port is no port" >&2
    exit 2
fi
tests=$source/src/test/regress
[ -x "$tests/pg_regress" ] || { echo "regress.sh: $tests/pg_regress is not there: build PostgreSQL first" >&2; exit 1; }
prefix=$(sed -n 's/^prefix := *//p' "$source/src/Makefile.global")
for program in perf "$sovia" "$prefix/bin/postgres"; do
    command -v "$program" >/dev/null || { echo "regress.sh: $program is not there" >&2; exit 1; }
done
as=()
if [ "$(id -u)" = 0 ]; then
    [ -n "${AS:-}" ] || { echo "regress.sh: PostgreSQL does not run as root: say AS=USER" >&2; exit 2; }
    id -u "$AS" >/dev/null || exit 2
    as=(runuser -u "$AS" --)
fi
config=()
if [ -n "${CONFIG:-}" ]; then config=(--config "$(realpath -- "$CONFIG")"); fi

folder=$(mktemp -d /dev/shm/regress.XXXXXX)
server=
stop() {
    if [ -n "$server" ] && [ -e "$folder/data/postmaster.pid" ]; then kill -INT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null || true; fi
    if [ -n "$server" ]; then wait "$server" 2>/dev/null || true; fi
    server=
    rm -rf "$folder/data" "$folder/results"
}
trap 'stop; rm -rf "$folder"' EXIT
if [ -n "${as[*]}" ]; then chown "$AS" "$folder"; fi

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
if listens; then
    echo "regress.sh: somebody serves at port $port: set PORT to another" >&2
    exit 1
fi

run() { (cd "$tests" && "${as[@]}" "$@"); }

# One run; sets `cpu` and `time`, from beginning to end, both by PostgreSQL's own. Not in a subshell: an end in one would leave the server.
measure() {
    run mkdir "$folder/results"
    run "$prefix/bin/initdb" -A trust --no-sync -D "$folder/data" >/dev/null
    printf '%s\n' 'fsync = off' "listen_addresses = '127.0.0.1'" "port = $port" "unix_socket_directories = ''" 'shared_buffers = 256MB' 'max_connections = 60' >>"$folder/data/postgresql.conf"
    run "${way[@]}" "$prefix/bin/postgres" -D "$folder/data" >"$folder/server.log" 2>&1 &
    server=$!
    until "$prefix/bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
        kill -0 "$server" 2>/dev/null || { echo "regress.sh: PostgreSQL does not start" >&2; tail -n 3 "$folder/server.log" >&2; exit 1; }
    done
    perf record -q -a -e cpu-clock -F 3000 -o "$folder/profile" -- "${as[@]}" env -C "$tests" "${way[@]}" ./pg_regress --inputdir=. --outputdir="$folder/results" --bindir="$prefix/bin" --dlpath="$tests" \
        --host=127.0.0.1 --port="$port" --user="$(run id -un)" --max-concurrent-tests=20 --schedule=parallel_schedule >"$folder/said" 2>&1 ||
        { grep -E 'FAILED|failed' "$folder/said" >&2 || tail -n 3 "$folder/said" >&2; exit 1; }
    stop
    local figures
    figures=$(profiled)
    read -r cpu time <<<"$figures"
}

profiled() {
    perf script -i "$folder/profile" -F comm,time,ip,dso 2>/dev/null | awk '
        !match($0, / [0-9]+\.[0-9]+:/) { next }
        {
            comm = substr($0, 1, RSTART - 1); gsub(/^ +| +$/, "", comm)
            if (comm == "swapper" || comm == "perf") next
            time = substr($0, RSTART + 1, RLENGTH - 2)
            all++
            if (comm == "postgres" && $NF ~ /\/postgres\)$/) own++
            if (comm == "psql" || comm == "pg_regress") { if (!first) first = time; last = time }
        }
        END { if (!own || !last) { print "regress.sh: perf saw nothing of PostgreSQL" > "/dev/stderr"; exit 1 } printf "%.4f %.4f\n", all / own, (last - first) * 3000 / own }'
}

middle() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

mkdir "$folder/figures"
for round in $(seq "$rounds"); do
    for name in tcp sovia; do
        way=()
        if [ "$name" = sovia ]; then way=("$sovia" run -q "${config[@]}" --); fi
        measure
        echo "$cpu" >>"$folder/figures/$name.cpu"
        echo "$time" >>"$folder/figures/$name.time"
        printf 'round %d, %-5s  CPU time %.3f, from beginning to end %.3f\n' "$round" "$name" "$cpu" "$time"
    done
done
for what in cpu time; do
    tcp=$(middle <"$folder/figures/tcp.$what")
    now=$(middle <"$folder/figures/sovia.$what")
    awk -v what="$what" -v tcp="$tcp" -v now="$now" 'BEGIN {
        name = what == "cpu" ? "CPU time" : "from beginning to end"
        printf "%-22s TCP %.3f, sovia %.3f: %+.1f %% (medians)\n", name, tcp, now, 100 * (now / tcp - 1) }'
done
