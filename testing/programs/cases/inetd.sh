# shellcheck shell=bash
declare_case inetd_cat 30
declare_case inetd_stdio 30
declare_case inetd_wait 30
declare_case inetd_ls 30 short
declare_case inetd_forgets 30 short

# inetd_start PORT SERVICE...: a super-server for one service, of a program and its arguments, as this user. Its variables:
inetd_way=nowait
inetd_options=-iE # -E: services get its environment, LD_PRELOAD with it

inetd_start() {
    need inetd nc
    echo "127.0.0.1:$1 stream tcp $inetd_way $(id -un) $(command -v "$2") ${2##*/} ${*:3}" >inetd.conf
    serve inetd $inetd_options "$DIR/inetd.conf"
    await_port "$1"
}

# What a service sends back for a file.
exchange() {
    client nc -N 127.0.0.1 "$inetd_port" <"$1" >"$2" || fail "nc: $?"
}

case_inetd_cat() {
    inetd_port=$(port)
    inetd_start "$inetd_port" cat
    random_file sent 50000001
    exchange sent got
    same_file sent got
    # Of several at a time each has a service of its own.
    local turn clients=()
    for turn in 1 2 3; do
        random_file "sent.$turn" 1000000
        exchange "sent.$turn" "got.$turn" &
        clients+=($!)
    done
    wait "${clients[@]}"
    for turn in 1 2 3; do same_file "sent.$turn" "got.$turn"; done
}

# A connection that is somebody's standard input and output through the C library's streams.
case_inetd_stdio() {
    need cc
    cc -O2 -o lines "$home/servers/lines.c"
    inetd_port=$(port)
    inetd_start "$inetd_port" "$DIR/lines"
    seq 20000 | sed 's/^/line /' >sent
    exchange sent got
    { awk '{ print NR ": " $0 }' sent; echo goodbye after 20000; } >wanted
    same_file wanted got
    # A line, its answer, and so on.
    coproc TALK { client nc 127.0.0.1 "$inetd_port"; }
    local turn answer
    for turn in $(seq 200); do
        echo "turn $turn" >&"${TALK[1]}"
        read -r answer <&"${TALK[0]}"
        [ "$answer" = "$turn: turn $turn" ] || fail "turn $turn: $answer"
    done
    echo quit >&"${TALK[1]}"
    read -r answer <&"${TALK[0]}"
    [ "$answer" = "goodbye after 200" ] || fail "$answer"
}

# The service inherits the socket that listens, and inetd goes on when it has ended.
case_inetd_wait() {
    need python3
    inetd_port=$(port)
    inetd_way=wait
    inetd_start "$inetd_port" /usr/bin/python3 "$home/servers/waiter.py"
    local turn
    for turn in 1 2; do
        random_file "sent.$turn" 50000001
        exchange "sent.$turn" "got.$turn"
        same_file "sent.$turn" "got.$turn"
    done
}

# As installed inetd removes LD_PRELOAD, so services know nothing of sovia.
case_inetd_forgets() {
    inetd_port=$(port)
    inetd_options=-i
    inetd_start "$inetd_port" cat
    random_file sent 5000001
    exchange sent got
    same_file sent got
    [ ! -s client.upgrades ] || fail "a connection left TCP"
}

# The list goes to the connection itself: it is the standard output of ls.
case_inetd_ls() {
    inetd_port=$(port)
    mkdir many
    touch many/file-{0001..3000}
    inetd_start "$inetd_port" ls -lA "$DIR/many"
    client nc -d 127.0.0.1 "$inetd_port" >got || fail "nc: $?"
    same_file <(ls -lA many) got
}
