#!/usr/bin/env bash
# What sovia gains: each program over TCP and under sovia in turns, the median of the ratios, and what the noise leaves of it. docs/compat quotes it.
#   gain.sh [OPTION...] [PROGRAM...]     all programs, unless some are named
#     --sovia FILE     the program to test        (default: sovia of the release build)
#     --rounds N       of each                    (default: 5)
#     --ends both|server|client|each    which are under sovia; each: a column for each    (default: both)
#     --list           the programs
# With CHRT=10 in the environment everything runs under chrt -f 10: on a machine that others load, too.
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=kit.sh
source "$home/kit.sh"
declare_case() { :; }
# shellcheck source=rates.sh
source "$home/rates.sh"

# One measurement in a folder and a process of its own: gain.sh --one NAME ENDS
if [ "${1:-}" = --one ]; then
    ends=$3
    cd "$DIR"
    : >server.upgrades
    : >client.upgrades
    chmod 666 server.upgrades client.upgrades
    # Files of one kilobyte where a server of files makes its own.
    mkdir() { command mkdir "$@"; [ "$*" != www ] || random_file www/kilobyte 1024; }
    "gain_$2"
    exit
fi

sovia=${CARGO_TARGET_DIR:-$home/../../target}/release/sovia rounds=5 ends=both names=()
while [ $# -gt 0 ]; do
    case $1 in
        --sovia) sovia=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --ends) ends=$2; shift ;;
        --list) for name in "${order[@]}"; do printf '%-18s %s\n' "$name" "${unit[$name]}"; done; exit ;;
        -h | --help) sed -n '2,8s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
        -*) echo "gain.sh: no option $1" >&2; exit 2 ;;
        *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=("${order[@]}")
SOVIA=$(realpath "$sovia")
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sovia-gain-XXXXXX")
chmod 755 "$WORK"
export SOVIA WORK
command mkdir "$WORK/ports"
# A measurement has a session of its own, and so hears nothing of Ctrl-C.
end_measurement() { ! [ -s "$WORK/leader" ] || stop_group "$(<"$WORK/leader")"; }
trap 'end_measurement; rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM

# measure NAME ENDS: prints the number, or nothing.
measure() {
    local leader
    DIR=$WORK/run
    export DIR
    rm -rf "$DIR"
    command mkdir "$DIR"
    chmod 755 "$DIR"
    setsid ${CHRT:+chrt -f "$CHRT"} timeout 60 "${BASH_SOURCE[0]}" --one "$1" "$2" >"$DIR/number" 2>"$DIR/errors" </dev/null &
    leader=$!
    echo "$leader" >"$WORK/leader"
    wait "$leader" || true
    stop_group "$leader"
    rm -f "$WORK/leader"
    tail -n 1 "$DIR/number" | grep -xE '[0-9.]+' || tail -n 1 "$DIR/number" >>"$DIR/errors"
}

median() { sort -g | awk '{ all[NR] = $1 } END { if (NR) print (NR % 2) ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2 }'; }

# ratios TCP UNDER: of two lists, the median of the ratios of each round, and between which two of these the true one lies at 95 %; before six rounds that
# is not to be had, and the least and the greatest are told.
ratios() {
    paste <(echo "$2") <(echo "$1") | awk '{ print $1 / $2 }' | sort -g | awk '
        { all[NR] = $1 }
        END {
            # So many rounds at either end may be left out: as seldom do that many fair coins fall the same way.
            chance = 0.5 ^ NR
            for (from = 1; 2 * chance <= 0.05 && from < NR / 2; from++) { ways = ways ? ways * (NR - from + 1) / from : NR; chance += ways * 0.5 ^ NR }
            from = from > 1 ? from - 1 : 1
            middle = NR % 2 ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2
            printf "%.2f (%.2f–%.2f)", middle, all[from], all[NR + 1 - from]
        }'
}

case $ends in
    both | server | client) ;;
    each) ends="both server client" ;;
    *) echo "gain.sh: --ends is both, server, client or each, not $ends" >&2; exit 2 ;;
esac
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "gain.sh: --rounds is a number from 1 on, not $rounds" >&2; exit 2; }
# shellcheck disable=SC2086 # one column each
printf '%-18s %10s %s  unit\n' program TCP "$(printf '%-18s ' $ends)"
for name in "${names[@]}"; do
    [ -n "${unit[$name]:-}" ] || { echo "gain.sh: no program $name; --list names them" >&2; exit 2; }
    declare -A rates=()
    missing=
    for _ in $(seq "$rounds"); do
        for end in neither $ends; do
            rate=$(measure "$name" "$end")
            [ -n "$rate" ] || { missing="$end: $(tail -n 1 "$WORK/run/errors")"; break 2; }
            rates[$end]+=${rates[$end]:+$'\n'}$rate
        done
    done
    if [ -n "$missing" ]; then
        printf '%-18s not measured, %s\n' "$name" "$missing"
        continue
    fi
    printf '%-18s %10.0f ' "$name" "$(median <<<"${rates[neither]}")"
    for end in $ends; do printf '%-20s ' "$(ratios "${rates[neither]}" "${rates[$end]}")"; done
    printf ' %s\n' "${unit[$name]}"
done
