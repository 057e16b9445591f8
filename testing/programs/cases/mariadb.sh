# shellcheck shell=bash
declare_case mariadb_load 90
declare_case mariadb_values 60
declare_case mariadb_replica 90 among

# mariadb_start [OPTION...]: a server of its own, owned by somebody who is not root if we are.
mariadb_start() {
    need mariadbd mariadb mariadb-slap mariadb-install-db
    mariadb_port=$(port)
    mariadb_serve serve primary "$mariadb_port" "$@"
}

# mariadb_serve serve|serve_client FOLDER PORT [OPTION...]
mariadb_serve() {
    local how=$1 folder=$DIR/$2 port=$3 user=()
    shift 3
    mkdir "$folder" "$folder/tmp"
    [ "$(id -u)" != 0 ] || { chown -R nobody:nogroup "$folder"; user=(--user=nobody); }
    # Two that are installed at once would take each other's temporary tables.
    TMPDIR=$folder/tmp mariadb-install-db --no-defaults "${user[@]}" --datadir="$folder/data" --auth-root-authentication-method=normal --skip-test-db \
        >install.log 2>&1 || fail "mariadb-install-db: $(tail -n 1 install.log)"
    "$how" mariadbd --no-defaults "${user[@]}" --datadir="$folder/data" --bind-address=127.0.0.1 --port="$port" --socket="$folder/socket" \
        --pid-file="$folder/pid" --tmpdir="$folder/tmp" --innodb-flush-log-at-trx-commit=0 --max-allowed-packet=64M "$@"
    await_port "$port"
}

# Runs SQL beside the case, over a Unix socket.
mariadb_beside() {
    mariadb --no-defaults -S "primary/socket" -u root -BN "$@"
}

mariadb_client() {
    client mariadb --no-defaults -h 127.0.0.1 -P "$mariadb_port" -u root --max-allowed-packet=64M -BNr "$@"
}

mariadb_slap() {
    client mariadb-slap --no-defaults -h 127.0.0.1 -P "$mariadb_port" -u root --csv="$1" "${@:2}" >slap.log 2>&1 || fail "$(tail -n 1 slap.log)"
}

# A thread for each connection, and a pool of threads with one set of epoll.
case_mariadb_load() {
    local handling
    for handling in one-thread-per-connection pool-of-threads; do
        mariadb_start --thread-handling=$handling
        mariadb_slap mixed --concurrency=8 --auto-generate-sql --auto-generate-sql-load-type=mixed --number-of-queries=400
        mariadb_slap one --query='SELECT 1' --create-schema=mysql --number-of-queries=3000
        mariadb_slap eight --query='SELECT 1' --create-schema=mysql --concurrency=8 --number-of-queries=8000
        kill -TERM "$server"
        wait "$server" || fail "the server ended with $?"
        ended "$server"
        rm -r primary
    done
    ! grep -E '\[ERROR\]' server.log || fail "$(grep -F '[ERROR]' server.log | tail -n 1)"
}

# Rows up to 7 MB in and out, at once and one after the other; a dump; what becomes of connections that are killed at one end or the other.
case_mariadb_values() {
    mariadb_start
    awk 'BEGIN { srand(1); for (i = 0; i < 10000; i++) { v = ""; n = i % 200; while (length(v) < n) v = v rand(); print i "\t" v } }' >rows
    local length
    for length in 1 1000 100000 5000000; do
        printf '%d\t%s\n' $((20000 + length)) "$(head -c $length /dev/urandom | base64 -w 0)" >>rows
    done
    mariadb_client --local-infile=1 -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT); LOAD DATA LOCAL INFILE 'rows' INTO TABLE d.t"
    mariadb_client -e 'SELECT * FROM d.t ORDER BY id' >got
    same_file rows got
    client mariadb-dump --no-defaults --max-allowed-packet=64M -h 127.0.0.1 -P "$mariadb_port" -u root d >dump.sql
    mariadb_client -e 'CREATE DATABASE e'
    mariadb_client e <dump.sql
    mariadb_client --quick -e 'SELECT * FROM e.t ORDER BY id' >got
    same_file rows got

    # By a second connection: its thread shuts the socket of the other down.
    mkfifo orders
    exec 7<>orders
    start_client mariadb --no-defaults -n -h 127.0.0.1 -P "$mariadb_port" -u root -BN <orders >idle.log 2>&1
    seq -f 'SELECT %g;' 100 >&7
    await grep -qx 100 idle.log
    mariadb_beside -e "KILL $(mariadb_beside -e "SELECT id FROM information_schema.processlist WHERE command = 'Sleep' AND host LIKE '%:%'")"
    echo 'SELECT 101;' >&7
    exec 7>&-
    wait "$process" || true
    grep -qE 'gone away|Lost connection|Connection was killed' idle.log || fail "a killed connection: $(tail -n 1 idle.log)"

    # Its thread ends with the client.
    start_client mariadb --no-defaults -q -h 127.0.0.1 -P "$mariadb_port" -u root -e 'SELECT a.id, b.v FROM d.t a, d.t b' >/dev/null 2>&1
    busy() { [ "$(mariadb_beside -e "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT a.id%'")" = "$1" ]; }
    await busy 1
    kill -KILL "$process"
    wait "$process" 2>/dev/null || true
    await busy 0
}

# A replica, a stop and a new start of its link.
case_mariadb_replica() {
    mariadb_start --log-bin=bin --server-id=1
    mariadb_beside -e "CREATE USER replica; GRANT ALL ON *.* TO replica"
    local replica
    replica=$(port)
    mariadb_serve serve_client replica "$replica" --server-id=2
    on_replica() { mariadb --no-defaults -S replica/socket -u root -BN "$@"; }
    on_replica -e "CHANGE MASTER TO master_host='127.0.0.1', master_port=$mariadb_port, master_user='replica', master_use_gtid=slave_pos; START SLAVE"
    mariadb_client -e 'CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)'
    seq -f "INSERT INTO t (v) VALUES (repeat('value %g', 100));" 1000 >insert.sql
    has() { [ "$(on_replica -e 'SELECT count(*) FROM d.t' 2>/dev/null)" = "$1" ]; }
    local rows
    for rows in 1000 2000; do
        mariadb_client d <insert.sql
        await has $rows
        on_replica -e 'STOP SLAVE; START SLAVE'
    done
    [ "$(on_replica -e 'CHECKSUM TABLE d.t')" = "$(mariadb_beside -e 'CHECKSUM TABLE d.t')" ] || fail "the replica differs"
}
