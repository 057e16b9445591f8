# What cases are written with. A case runs in a process group of its own, in a folder of its own ($DIR), which is where it starts.
# shellcheck shell=bash

cases=()
declare -A seconds about

# declare_case NAME SECONDS [WORD...]: the function case_NAME is a case, ended after so many seconds. The words:
#   short   it may upgrade nothing: its connections may be over before one is worth it
#   tcp     it must upgrade nothing
#   among   its servers have connections among themselves, which may be upgraded where the client is a stranger
#   long    it is run by --long only
#   alone   it has a network namespace of its own, where we may make one
declare_case() {
    local name=$1
    cases+=("$name")
    seconds[$name]=$2
    shift 2
    about[$name]=" $* "
}

is() {
    [[ ${about[$1]} = *" $2 "* ]]
}

# The process of one case: run_case NAME ENDS.
run_case() {
    local name=$1 end pid
    ends=$2
    cd "$DIR" || exit 1
    : >server.upgrades
    : >client.upgrades
    # The programs of a server may give up the user that they are started as.
    chmod 666 server.upgrades client.upgrades
    chmod 755 .
    "case_$name"
    for pid in "${servers[@]}"; do
        kill -0 "$pid" 2>/dev/null || fail "the server died: $(tail -n 1 server.log)"
    done
    local counts
    counts="$(wc -l <server.upgrades) at the server, $(wc -l <client.upgrades) at the client"
    for end in server client; do
        if [ "$ends" = both ] && ! is "$name" tcp; then
            [ -s $end.upgrades ] || is "$name" short || fail "no connection left TCP: $counts"
        elif ! { [ "$ends" = server ] && [ $end = server ] && is "$name" among; }; then
            [ ! -s $end.upgrades ] || fail "a connection left TCP though one end is a stranger: $counts"
        fi
    done
}

servers=()

# Starts a server that is to live until the end of the case.
serve() {
    start_server server "$@"
    servers+=("$server")
}

# The same for a server that is the other end of `serve`'s connections, as clients are: what is behind a proxy, or a replica.
serve_client() {
    start_server client "$@"
    servers+=("$server")
}

# Starts a server that ends by itself; wait for $server.
serve_once() {
    start_server server "$@"
}

# It is the server that must be alive at the end no more.
ended() {
    local pid left=()
    for pid in "${servers[@]}"; do [ "$pid" = "$1" ] || left+=("$pid"); done
    servers=("${left[@]}")
}

start_server() {
    local end=$1
    shift
    case $ends in
        both | "$end") SOVIA_TRACE_UPGRADE=$DIR/$end.upgrades "$SOVIA" run -- "$@" >>server.log 2>&1 & ;;
        *) "$@" >>server.log 2>&1 & ;;
    esac
    server=$!
}

# Runs a client; what it prints is the caller's.
client() {
    case $ends in
        both | client) SOVIA_TRACE_UPGRADE=$DIR/client.upgrades "$SOVIA" run -- "$@" ;;
        *) "$@" ;;
    esac
}

# Starts a client beside the case, which may signal $process and wait for it. Its standard input is the caller's.
start_client() {
    case $ends in
        both | client) SOVIA_TRACE_UPGRADE=$DIR/client.upgrades "$SOVIA" run -- "$@" <&0 & ;;
        *) "$@" <&0 & ;;
    esac
    process=$!
}

# at_end COMMAND...: what is run when the case ends, however it does; for what must not be killed.
at_end() {
    # shellcheck disable=SC2064 # its words are known now
    trap "$(printf '%q ' "$@")" EXIT
}

fail() {
    echo "$*"
    exit 1
}

# Skips the case where a program is missing.
need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "no $program"; exit 77; }
    done
}

# A port that nobody uses, below those that the kernel gives to clients; kept for this case.
port() {
    local port
    while port=$((12000 + RANDOM % 20000)); do
        ! is_listening $port && mkdir "$WORK/ports/$port" 2>/dev/null && break
    done
    echo $port
}

is_listening() {
    # State 0A is LISTEN.
    grep -qsiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ 0A " /proc/net/tcp /proc/net/tcp6
}

# Debian's, rather than a wrapper script of one that manages versions.
python() {
    if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else command -v python3; fi
}

# The command that runs another as somebody who is not root, for servers that refuse root.
unprivileged=()
[ "$(id -u)" != 0 ] || unprivileged=(setpriv --reuid=nobody --regid=nogroup --clear-groups)

# Waits until the server that was started last listens.
await_port() {
    until is_listening "$1"; do
        kill -0 "$server" 2>/dev/null || fail "the server did not start: $(tail -n 1 server.log)"
        sleep 0.02
    done
}

# Waits until a command succeeds; the case's time is the limit.
await() {
    until "$@"; do sleep 0.02; done
}

# random_file NAME BYTES
random_file() {
    head -c "$2" /dev/urandom >"$1"
}

same_file() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ: $(cmp "$1" "$2" 2>&1 | head -n 1)"
}

# Ends what is left of the group that this process leads.
stop_group() {
    kill -KILL -- "-$1" 2>/dev/null || true
}
