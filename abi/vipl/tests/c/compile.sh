#!/bin/sh
# Compiles vipl.h in every language mode, and the C tests and samples, with warnings as errors; runs what needs no library.
# Usage: compile.sh            compile only
#        compile.sh DIR OUT    also link everything against DIR/libvipl.so, into OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
vipl=$(cd "$here/../.." && pwd)
library=${1:-}
out=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

warn="-Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion"
c_warn="$warn -Wstrict-prototypes -Wmissing-prototypes -Wvla"

compilers=
for cc in gcc clang; do
    if command -v $cc >/dev/null; then compilers="$compilers $cc"; else echo "skip: no $cc here"; fi
done
[ -n "$compilers" ] || { echo "no compiler"; exit 1; }

# Twice, and behind a definition of IN and OUT, as windows.h has them.
printf '#include <vipl.h>\n#include <vipl.h>\nint unit;\n' >"$work/alone.c"
printf '#define IN\n#define OUT\n#include <vipl.h>\nint unit;\n' >"$work/in_out.c"
cp "$work/alone.c" "$work/alone.cc"
cp "$work/in_out.c" "$work/in_out.cc"

header() { # compiler, suffix, standard
    for model in "" "-m32 -ffreestanding"; do
        [ -z "$model" ] || [ -n "$narrow" ] || continue
        for define in "" -DVIPL095 -DVIPL_VOLATILE_SEGMENTS; do
            for unit in alone in_out; do
                # shellcheck disable=SC2086
                $1 $model $define -std=$3 $warn -fsyntax-only -I"$vipl/include" "$work/$unit.$2"
            done
        done
    done
    echo "ok: vipl.h alone, $1 -std=$3, ${narrow:+64 and 32 bits, }plain, VIPL095 and volatile"
}

for cc in $compilers; do
    narrow=
    if $cc -m32 -ffreestanding -fsyntax-only -x c /dev/null 2>/dev/null; then narrow=1; else echo "skip: no 32-bit $cc here"; fi
    for standard in gnu89 c99 gnu99 c11 c17 gnu17 c2x; do header $cc c $standard; done
    for standard in c++11 c++17 c++20; do header $cc cc $standard; done

    for standard in c99 c11 gnu17; do
        for source in "$here"/*.c "$vipl"/samples/*/*.c; do
            # shellcheck disable=SC2086
            $cc -std=$standard -O2 $c_warn -I"$vipl/include" -c -o "$work/object.o" "$source"
        done
        echo "ok: tests and samples, $cc -std=$standard"
    done

    $cc -std=c99 -O2 -I"$vipl/include" -o "$work/layout" "$here/layout.c"
    echo "run: layout, $cc"
    "$work/layout"
done

# The map, the header and the test of it name the same functions.
sed -n 's/^ *\(Vip[A-Za-z]*\);$/\1/p' "$vipl/vipl.map" | sort >"$work/map"
sed -n 's/^\(VIP_RETURN\|VIP_PVOID\|void\) \(Vip[A-Za-z]*\)(.*/\2/p' "$vipl/include/vipl.h" | sort >"$work/header"
grep -o 'ENTRY(Vip[A-Za-z]*)' "$here/abi_symbols.c" | sed 's/ENTRY(\(.*\))/\1/' | sort >"$work/test"
diff "$work/map" "$work/header"
diff "$work/map" "$work/test"
echo "ok: vipl.map, vipl.h and abi_symbols.c name the same $(wc -l <"$work/map") functions"

[ -n "$library" ] || exit 0
[ -n "$out" ] || { echo "usage: compile.sh [DIR OUT]"; exit 2; }
mkdir -p "$out"
library=$(cd "$library" && pwd)
for source in "$here"/abi_*.c "$here"/legacy_*.c "$here"/speed.c "$vipl"/samples/*/*.c; do
    program=$out/$(basename "$source" .c)
    # shellcheck disable=SC2086
    gcc -std=c99 -O2 -g $c_warn -I"$vipl/include" -o "$program" "$source" -L"$library" -lvipl -Wl,-rpath,"$library" -pthread -ldl
    echo "built: $program"
done
