#!/usr/bin/env bash
# Real programs, client and server, under sovia and beside it. README.md says what a case is.
#   run.sh [OPTION...] [CASE...]     all cases, unless some are named
#     --sovia FILE     the program to test                  (default: sovia of the release build)
#     --ends LIST      of neither, both, server, client     (default: all, with commas between)
#     --jobs N         cases at a time                      (default: as many as there are CPUs)
#     --times N        each so many times
#     --long           also the long ones, which need Java, Node.js and Go, or minutes
#     --keep           leave the folders of cases that pass, too
#     --list           the cases
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=kit.sh
source "$home/kit.sh"
# shellcheck source=leftover.sh
source "$home/leftover.sh"
for file in "$home"/cases/*.sh; do
    # shellcheck disable=SC1090 # all are in this folder
    source "$file"
done

# One case in a process of its own: run.sh --one NAME ENDS
if [ "${1:-}" = --one ]; then
    run_case "$2" "$3"
    exit
fi

# All cases share their functions' names: the last of two would be everybody's.
doubles=$(grep -hoE '^[a-z_0-9]+\(\)' "$home"/cases/*.sh | sort | uniq -d)
[ -z "$doubles" ] || { echo "run.sh: more than one file of cases has $doubles" >&2; exit 2; }

target=${CARGO_TARGET_DIR:-$home/../../target}
sovia=$target/release/sovia ends=neither,both,server,client jobs=$(nproc) times=1 keep=no long=no names=()
while [ $# -gt 0 ]; do
    case $1 in
        --sovia) sovia=$2; shift ;;
        --ends) ends=$2; shift ;;
        --jobs) jobs=$2; shift ;;
        --times) times=$2; shift ;;
        --keep) keep=yes ;;
        --long) long=yes ;;
        --list) for name in "${cases[@]}"; do echo "$name${about[$name]% }"; done; exit ;;
        -h | --help) sed -n '2,10s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
        -*) echo "run.sh: no option $1" >&2; exit 2 ;;
        *) names+=("$1") ;;
    esac
    shift
done
if [ ${#names[@]} = 0 ]; then
    for name in "${cases[@]}"; do
        [ $long = no ] && is "$name" long || names+=("$name")
    done
fi
export LONG=$long
for name in "${names[@]}"; do
    [ -n "${seconds[$name]:-}" ] || { echo "run.sh: no case $name; --list names them" >&2; exit 2; }
done
for end in ${ends//,/ }; do
    [[ $end =~ ^(neither|both|server|client)$ ]] || { echo "run.sh: ends may be neither, both, server, client" >&2; exit 2; }
done
[ -x "$sovia" ] || { echo "run.sh: no $sovia; cargo build --release -p sovia" >&2; exit 2; }
SOVIA=$(realpath "$sovia")
export SOVIA

work=$(mktemp -d "${TMPDIR:-/tmp}/sovia-programs-XXXXXX")
chmod 755 "$work"
export WORK=$work
mkdir "$work/ports" "$work/results" "$work/kept" "$work/leaders"

# Each case is a process group of its own; its leader's number is the name of a file until it has ended.
stop_all() {
    local leader attending
    mapfile -t attending < <(jobs -rp)
    [ ${#attending[@]} = 0 ] || kill "${attending[@]}" 2>/dev/null || true
    for leader in "$work"/leaders/*; do
        [ ! -e "$leader" ] || stop_group "${leader##*/}"
    done
    # What failed is left to be looked at.
    [ -n "$(ls -A "$work/kept" 2>/dev/null)" ] || rm -rf "$work"
}
trap stop_all EXIT
trap 'exit 130' INT TERM
may_be_alone=no
if unshare -n -- ip link set lo up 2>/dev/null; then may_be_alone=yes; fi

# Runs one case to its end, and says how that was.
attend() {
    trap - EXIT INT TERM
    local name=$1 end=$2 turn=$3 began ended status=0 leader verdict reason alone=()
    local folder=$work/$name-$end-$turn
    mkdir "$folder"
    began=${EPOCHREALTIME/./}
    if is "$name" alone && [ $may_be_alone = yes ]; then
        # shellcheck disable=SC2016 # sh's
        alone=(env ALONE=yes unshare -n -- sh -c 'ip link set lo up && exec "$@"' alone)
    fi
    DIR=$folder setsid timeout --kill-after=5 "${seconds[$name]}" "${alone[@]}" "${BASH_SOURCE[0]}" --one "$name" "$end" \
        >"$folder/case.log" 2>&1 </dev/null &
    leader=$!
    : >"$work/leaders/$leader"
    wait "$leader" || status=$?
    stop_group "$leader"
    rm "$work/leaders/$leader"
    ended=${EPOCHREALTIME/./}
    reason=$(tail -n 1 "$folder/case.log")
    case $status in
        0) verdict=ok reason=$(paste -sd'|' "$folder/figures" 2>/dev/null | sed 's/|/; /g' || true) ;;
        77) verdict=skipped ;;
        124 | 137) verdict=FAILED reason="not done after ${seconds[$name]} s${reason:+: $reason}" ;;
        *) verdict=FAILED ;;
    esac
    echo "$verdict" >"$work/results/$name-$end-$turn"
    if [ $verdict = FAILED ] || [ $keep = yes ]; then
        mv "$folder" "$work/kept/"
        reason+=" ($work/kept/$name-$end-$turn)"
    else
        rm -rf "$folder"
    fi
    printf '%-8s %-22s %-8s %3d.%d s  %s\n' $verdict "$name" "$end" $(((ended - began) / 1000000)) \
        $(((ended - began) / 100000 % 10)) "$reason"
}

# The longest first, so that the last to end is not alone for long.
longest_first=$(for name in "${names[@]}"; do echo "${seconds[$name]} $name"; done | sort -rn -k1,1 -s | cut -d' ' -f2)
for turn in $(seq "$times"); do
    for name in $longest_first; do
        for end in ${ends//,/ }; do
            while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
            attend "$name" "$end" "$turn" &
        done
    done
done
wait

ok=$(grep -lx ok "$work"/results/* | wc -l || true)
failed=$(grep -lx FAILED "$work"/results/* | wc -l || true)
skipped=$(grep -lx skipped "$work"/results/* | wc -l || true)
result=ok
[ "$failed" = 0 ] || result=FAILED
printf 'test result: %s. %d passed; %d failed; %d ignored\n' $result "$ok" "$failed" "$skipped"
[ "$failed" = 0 ] && [ "$ok" != 0 ]
