# shellcheck shell=bash
declare_case memcached_values 30
declare_case memcached_load 30
declare_case memcached_capable 30 short

memcached_start() {
    need memcached
    memcached_port=$(port)
    # Under another user from the start, if it may choose.
    serve memcached -u nobody -l 127.0.0.1 -p "$memcached_port" -U 0 -t 2 -m 256 -I 9m
    await_port "$memcached_port"
}

# Values up to 8 MB, many in one request, without answers, compare-and-set; twenty connections at once.
case_memcached_values() {
    memcached_start
    client "$(python)" "$home/clients/memcached.py" "$memcached_port" || fail "memcached.py: $?"
}

# What comes back is compared with what was set, each time.
case_memcached_load() {
    memcached_start
    need memcaslap
    local bytes
    for bytes in 100 20000; do
        client memcaslap -s "127.0.0.1:$memcached_port" -T 2 -c 50 -x $((4000000 / (bytes + 100))) -X $bytes -v 1 >load.log 2>&1 ||
            fail "memcaslap: $(tail -n 1 load.log)"
        grep -q '^verify_failed: 0$' load.log || fail "$(grep verify_failed load.log || tail -n 1 load.log)"
        grep -q '^verify_misses: 0$' load.log || fail "$(grep verify_misses load.log)"
    done
}

# libmemcached's own tests of the text protocol and of the binary one, a connection each.
case_memcached_capable() {
    memcached_start
    need memccapable
    client memccapable -h 127.0.0.1 -p "$memcached_port" >capable.log 2>&1 || fail "$(grep -m 1 FAIL capable.log || tail -n 1 capable.log)"
}
