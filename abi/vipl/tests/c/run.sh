#!/bin/bash
# Builds and links libvipl, compiles the C tests and samples against it, and runs each in a process of its own.
# Usage: run.sh [WORD...]      only what has one of the words in its name
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vipl=$(cd "$here/../.." && pwd)
root=$(cd "$vipl/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
[[ $target = /* ]] || target=$root/$target
limit_s=120
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
cargo build --release --quiet --workspace
"$vipl/link.sh" --profile release
if ! bash "$here/compile.sh" "$target/release" "$work/bin" >"$work/compile" 2>&1; then
    cat "$work/compile"
    exit 1
fi

passed=0
failed=0
wanted=("$@")

# NAME COMMAND...: one line, and what the command printed if it failed.
run() {
    local name=$1 word began status=0 ms
    shift
    if [ ${#wanted[@]} -gt 0 ]; then
        for word in "${wanted[@]}"; do [[ $name = *"$word"* ]] && break; done
        [[ $name = *"$word"* ]] || return 0
    fi
    began=$(date +%s%N)
    timeout --kill-after=5 $limit_s "$@" >"$work/out" 2>&1 </dev/null || status=$?
    ms=$((($(date +%s%N) - began) / 1000000))
    if [ $status = 0 ]; then
        passed=$((passed + 1))
        printf 'ok     %-32s %6d ms\n' "$name" $ms
        return
    fi
    failed=$((failed + 1))
    [ $status != 124 ] || echo "not done after $limit_s s" >>"$work/out"
    printf 'FAILED %-32s %6d ms, status %d\n' "$name" $ms $status
    sed 's/^/       | /' "$work/out"
}

unset SOVIA_VIPL_STRICT SOVIA_VIPL_HOSTS
run abi_symbols "$work/bin/abi_symbols" "$target/release/libvipl.so"
static=$(sed -n 's/^Libs.private: //p' "$target/release/vipl.pc")
# shellcheck disable=SC2086
cc -O2 -I"$vipl/include" -o "$work/bin/static" "$vipl/samples/crossword/crossword.c" "$target/release/libvipl.a" $static
run "sample crossword, static" "$work/bin/static" --self
for device in shm shm,strict sim; do
    for test in "$here"/abi_*.c "$here"/legacy_*.c; do
        test=$(basename "$test" .c)
        case $device,$test in
            *,abi_symbols) continue ;;
            # These take the liberties that strict takes away; abi_memory tests both modes itself.
            shm,strict,legacy_armci | shm,strict,legacy_mpich_nt | shm,strict,abi_memory | shm,strict,abi_chaos) continue ;;
            # Its network is within one process.
            sim,legacy_*) continue ;;
        esac
        run "$test, $device" env VIPL_DEVICE="$device" "$work/bin/$test"
    done
    [ "$device" != sim ] || continue
    for sample in "$vipl"/samples/*/*.c; do
        sample=$(basename "$sample" .c)
        run "sample $sample, $device" "$work/bin/$sample" --self --device "$device"
    done
done
# What this one lacks differs from device to device. The port is one that hardly another run has at the same time, and that nobody is given who wants any.
run "abi_connect, iwarp" env VIPL_DEVICE=iwarp SOVIA_IWARP=127.0.0.1:$((20000 + $$ % 10000)) "$work/bin/abi_connect"

echo "test result: $passed passed, $failed failed"
[ $failed = 0 ]
