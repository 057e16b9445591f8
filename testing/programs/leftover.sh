# What is left when connections are over: counted by kind before and after. Source it after kit.sh.
# shellcheck shell=bash

# left PID...: "KIND COUNT" for each kind of thing that these processes hold, and that their network namespace has where that is this case's own.
#   sockets, segments, files, others   descriptors: of sockets, of connections' memory files, of other memory files, of anything else
#   mapped                             segments of connections in their memory maps
#   children                           processes that they started and that are there still, be it as zombies
#   unix, names, tcp, processes        of the namespace: Unix sockets, those at an abstract name of ours, TCP connections that are not in TIME-WAIT,
#                                      processes beside these and the case's own shell
left() {
    local pid
    for pid in "$@"; do
        find "/proc/$pid/fd" -mindepth 1 -printf '%l\n' 2>/dev/null || true
        sed -n 's/.*\(sovia-stream\).*/mapped/p' "/proc/$pid/maps" 2>/dev/null || true
    done >left.held
    if is_alone; then
        # Its name has brackets, which are a pattern's. While `find` looks it is one of them; when its list is read it is not.
        find /proc/[0-9]*/ns/net -maxdepth 0 -lname "$(readlink /proc/$$/ns/net | tr '[]' '?')" >left.processes 2>/dev/null || true
    else
        : >left.processes
    fi
    local path others=0
    while read -r path; do
        pid=${path#/proc/}
        pid=${pid%%/*}
        [[ " $$ $* " = *" $pid "* ]] || [ ! -e "/proc/$pid" ] || others=$((others + 1))
    done <left.processes
    awk '
        /^socket:/ { count["sockets"]++; next }
        /^\/memfd:sovia-stream/ { count["segments"]++; next }
        /^\/memfd:/ { count["files"]++; next }
        /^mapped$/ { count["mapped"]++; next }
        { count["others"]++ }
        END { n = split("sockets segments mapped files others", kinds); for (i = 1; i <= n; i++) print kinds[i], count[kinds[i]] + 0 }' left.held
    echo "children $(pgrep -c -P "$(IFS=,; echo "$*")" || true)"
    if is_alone; then
        awk 'FNR > 1 { unix++ } / @sovia/ { names++ } END { print "unix", unix + 0; print "names", names + 0 }' /proc/net/unix
        # 06 is TIME-WAIT, 0A a listener.
        echo "tcp $(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$1 ~ /:$/ && $4 != "06" && $4 != "0A" { n++ } END { print n + 0 }')"
        echo "processes $others"
    fi
}

# remember PID...: what is there now is what may be there at the end.
remember() {
    left "$@" >left.before
    memory_before=$(resident "$@")
}

# await_nothing_more BOUND_KB PID...: until they hold no more of any kind than when `remember` was called, of these or of those that they have replaced,
# and no more memory than then and BOUND_KB. The case's time is the limit; its last line says what there was too much of. Appends to figures.
await_nothing_more() {
    local bound=$1 more said=''
    shift
    while :; do
        left "$@" >left.after
        more=$(awk 'NR == FNR { before[$1] = $2; next } $2 > before[$1] + 0 { printf "%s%s %d, before %d", sep, $1, $2, before[$1]; sep = "; " }' \
            left.before left.after)
        memory_after=$(resident "$@")
        [ "$memory_after" -le $((memory_before + bound)) ] || more+="${more:+; }$memory_after kB, before $memory_before"
        [ -n "$more" ] || break
        [ "$more" = "$said" ] || echo "left: $more"
        said=$more
        sleep 0.05
    done
    echo "nothing left over ($(awk '{ printf "%s%s %d", sep, $1, $2; sep = ", " }' left.after), memory $memory_before to $memory_after kB)" >>figures
}

# Memory of processes in kB, with their part of what they share; without that of files, which depends on who else runs the same programs.
resident() {
    local pid
    for pid in "$@"; do cat "/proc/$pid/smaps_rollup"; done | awk '/^Pss_(Anon|Shmem):/ { sum += $2 } END { print sum + 0 }'
}

# Whether this case has a network namespace of its own: run.sh says so.
is_alone() { [ "${ALONE:-no}" = yes ]; }
