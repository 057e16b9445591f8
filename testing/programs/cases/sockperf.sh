# shellcheck shell=bash
declare_case sockperf_ping_pong 20
declare_case sockperf_under_load 20
declare_case sockperf_throughput 20

# sockperf_run MODE OPTIONS
sockperf_run() {
    need sockperf
    local port
    port=$(port)
    serve sockperf sr --tcp -i 127.0.0.1 -p "$port"
    await_port "$port"
    client sockperf "$1" --tcp -i 127.0.0.1 -p "$port" -t 1 "${@:2}" >sockperf.log 2>&1 || fail "sockperf: $(tail -n 1 sockperf.log)"
    grep -q 'Test ended' sockperf.log || fail "no end: $(tail -n 1 sockperf.log)"
    ! grep -iE 'data integrity|error' sockperf.log || fail "$(grep -iE 'data integrity|error' sockperf.log | head -n 1)"
}

none_lost() {
    grep -q 'dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' sockperf.log ||
        fail "$(grep -m 1 'dropped messages' sockperf.log || echo no statistics)"
}

# It aborts when a round trip is shorter than its own idea of the least, hence --mps.
case_sockperf_ping_pong() {
    sockperf_run pp --mps=500000 --data-integrity
    none_lost
}

case_sockperf_under_load() {
    sockperf_run ul --mps=20000 --reply-every=5 -m 200
    none_lost
}

case_sockperf_throughput() {
    sockperf_run tp -m 1400
    grep -q 'Summary: Message Rate' sockperf.log || fail "no summary: $(tail -n 1 sockperf.log)"
}
