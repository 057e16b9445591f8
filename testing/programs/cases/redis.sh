# shellcheck shell=bash
declare_case redis_values 30
declare_case redis_large_values 30 short
declare_case redis_benchmark 60
declare_case redis_pipeline 30
declare_case redis_pubsub 30

redis() {
    need redis-server redis-cli redis-benchmark
    redis_port=$(port)
    serve redis-server --bind 127.0.0.1 --port "$redis_port" --save '' --appendonly no --dir "$DIR"
    await_port "$redis_port"
}

redis_cli() {
    client redis-cli -p "$redis_port" "$@"
}

# 5,000 keys in one pipeline, then read back one by one over one connection.
case_redis_values() {
    redis
    awk 'BEGIN { for (i = 0; i < 5000; i++) { v = ""; for (j = 0; j < i % 40; j++) v = v i; print "SET key" i " v" v } }' >set.txt
    redis_cli --pipe <set.txt >pipe.log
    grep -q 'errors: 0, replies: 5000' pipe.log || fail "$(tail -n 1 pipe.log)"
    awk '{ print "GET " $2 }' set.txt | redis_cli --raw >got.txt
    awk '{ print $3 }' set.txt >wanted.txt
    same_file wanted.txt got.txt
    [ "$(redis_cli DBSIZE)" = 5000 ] || fail "DBSIZE"
}

# One value a connection, up to 8 MB, which goes in one command and comes in one answer.
case_redis_large_values() {
    redis
    local bytes
    for bytes in 1 1000 16384 65537 1000000 8000000; do
        random_file value $bytes
        [ "$(redis_cli -x SET value <value)" = OK ] || fail "SET of $bytes bytes"
        redis_cli --raw GET value >got
        # redis-cli ends what it prints with a line feed.
        truncate -s -1 got
        same_file value got
    done
}

case_redis_benchmark() {
    redis
    client redis-benchmark -p "$redis_port" -q -n 5000 -c 20 -t ping,set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset \
        >benchmark.log
    client redis-benchmark -p "$redis_port" -q -n 2000 -c 5 -d 100000 -t set,get >>benchmark.log
    client redis-benchmark -p "$redis_port" -q -n 20000 -c 20 --threads 2 -t set,get >>benchmark.log
    ! grep -i error benchmark.log || fail "$(grep -i error benchmark.log)"
}

case_redis_pipeline() {
    redis
    client redis-benchmark -p "$redis_port" -q -n 100000 -c 50 -P 16 -t set,get,incr >benchmark.log
    client redis-benchmark -p "$redis_port" -q -n 100000 -c 1 -P 1000 -t get >>benchmark.log
    [ "$(redis_cli GET counter:__rand_int__)" = 100000 ] || fail "INCR lost some"
}

# Three subscribers get each of 2,000 messages once, in order.
case_redis_pubsub() {
    redis
    local subscriber subscribers=()
    for subscriber in 1 2 3; do
        # Standard input that does not end: redis-cli leaves otherwise.
        client redis-cli -p "$redis_port" --raw SUBSCRIBE news >"heard.$subscriber" 2>&1 < <(sleep infinity) &
        subscribers+=($!)
    done
    await_subscribers() { [ "$(redis-cli -p "$redis_port" --raw PUBSUB NUMSUB news | tail -n 1)" = 3 ]; }
    await await_subscribers
    awk 'BEGIN { for (i = 0; i < 2000; i++) print "PUBLISH news message" i; }' | redis_cli >published
    [ "$(grep -cx 3 published)" = 2000 ] || fail "PUBLISH reached fewer than three"
    awk 'BEGIN { for (i = 0; i < 2000; i++) print "message" i; }' >wanted
    for subscriber in 1 2 3; do
        await grep -qx message1999 "heard.$subscriber"
        grep -x 'message[0-9][0-9]*' "heard.$subscriber" >"got.$subscriber"
        same_file wanted "got.$subscriber"
    done
    kill "${subscribers[@]}"
}
