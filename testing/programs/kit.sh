# What cases are written with. A case runs in a process group of its own, in a folder of its own ($DIR), which is where it starts.
# shellcheck shell=bash

cases=()
declare -A seconds lasting

# declare_case NAME SECONDS [short]: the function case_NAME is a case, ended after so many seconds. `short` excuses it from
# upgrading a connection: its connections may be over before one is worth it.
declare_case() {
    cases+=("$1")
    seconds[$1]=$2
    lasting[$1]=yes
    [ "${3:-}" != short ] || lasting[$1]=no
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
        case $ends in
            both) [ -s $end.upgrades ] || [ "${lasting[$name]}" = no ] || fail "no connection left TCP: $counts" ;;
            *) [ ! -s $end.upgrades ] || fail "a connection left TCP though one end is a stranger: $counts" ;;
        esac
    done
}

servers=()

# Starts a server that is to live until the end of the case.
serve() {
    start_server "$@"
    servers+=("$server")
}

# Starts a server that ends by itself; wait for $server.
serve_once() {
    start_server "$@"
}

start_server() {
    case $ends in
        both | server) SOVIA_TRACE_UPGRADE=$DIR/server.upgrades "$SOVIA" run -- "$@" >>server.log 2>&1 & ;;
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
