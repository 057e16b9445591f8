#!/bin/bash
# Compiles sovia.h alone in the languages that it is for, and the C tests and samples against libsovia.so, and runs each over both NICs.
# Usage: run.sh [--profile dev] [WORD...]      only what has one of the words in its name
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
preload=$(cd "$here/../.." && pwd)
root=$(cd "$preload/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
[[ $target = /* ]] || target=$root/$target
folder=release
if [ "${1:-}" = --profile ]; then
    [ "${2:?}" = release ] || folder=debug
    shift 2
fi
limit_s=120
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

library=$target/$folder
[ -e "$library/libsovia.so" ] || library=$library/deps
[ -e "$library/libsovia.so" ] || { echo "run.sh: no libsovia.so; cargo build -p preload makes it" >&2; exit 1; }

warn="-Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion"
c_warn="$warn -Wstrict-prototypes -Wmissing-prototypes -Wvla"
passed=0
failed=0
printf '#include <sovia.h>\n#include <sovia.h>\nint unit;\n' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cc"
for cc in gcc clang; do
    if ! command -v $cc >/dev/null; then echo "skip: no $cc here"; continue; fi
    for standard in c99 c11; do
        # shellcheck disable=SC2086
        $cc -std=$standard $c_warn -I"$preload/include" -fsyntax-only "$work/alone.c"
        for source in "$here"/*.c "$preload"/samples/*.c; do
            # shellcheck disable=SC2086
            $cc -std=$standard -O2 $warn -I"$preload/include" -c -o "$work/object.o" "$source"
        done
    done
    for standard in c++11 c++17 c++20; do
        # shellcheck disable=SC2086
        $cc -x c++ -std=$standard $warn -I"$preload/include" -fsyntax-only "$work/alone.cc"
    done
    passed=$((passed + 1))
    echo "ok: sovia.h alone in C99, C11, C++11, C++17 and C++20, tests and samples, $cc"
done

# The header and the list of calls name the same functions.
sed -n 's|^int \(sovia_[a-z_]*\)(.*|\1|p' "$preload/include/sovia.h" | sort >"$work/header"
sed -n 's/^\(sovia_[a-z_]*\) | own |.*/\1/p' "$preload/calls.txt" | sort >"$work/list"
diff "$work/header" "$work/list"
echo "ok: sovia.h and calls.txt name the same $(wc -l <"$work/list") functions"

# As it is installed, by pkg-config.
mkdir -p "$work/prefix/include" "$work/prefix/lib" "$work/bin"
cp "$preload/include/sovia.h" "$work/prefix/include/"
ln -s "$library/libsovia.so" "$work/prefix/lib/libsovia.so"
"$preload/pc.sh" "$work/prefix" >"$work/sovia.pc"
flags=$(PKG_CONFIG_PATH=$work pkg-config --cflags --libs sovia)
for source in "$here"/*.c "$preload"/samples/*.c; do
    # shellcheck disable=SC2086
    cc -std=c99 -O2 -g -o "$work/bin/$(basename "$source" .c)" "$source" $flags -Wl,-rpath,"$work/prefix/lib" -pthread
done

# NAME COMMAND...: one line, and what the command printed if it failed.
wanted=("$@")
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

head -c 3000000 /dev/urandom >"$work/file"
: >"$work/empty"
for mode in vi iwarp; do
    for source in "$here"/ext_*.c; do
        test=$(basename "$source" .c)
        run "$mode $test" "$work/bin/$test" $mode
    done
    run "$mode sample file_transfer" bash -c '"$1" "$2" "$3" "$4" && cmp "$3" "$4"' - "$work/bin/file_transfer" $mode "$work/file" "$work/copy"
    run "$mode sample file_transfer, empty" bash -c '"$1" "$2" "$3" "$4" && cmp "$3" "$4"' - "$work/bin/file_transfer" $mode "$work/empty" "$work/copy"
    run "$mode sample key_value" "$work/bin/key_value" $mode
done
echo "test result: $passed passed, $failed failed"
[ $failed = 0 ]
