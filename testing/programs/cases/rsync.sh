# shellcheck shell=bash
# Short, for a side that receives forks in the middle of the meeting: see docs/compat/rsync.md.
declare_case rsync_daemon 40 short
declare_case rsync_changes 40 short

# rsync_start: a daemon with a tree to read from and a place to write to.
rsync_start() {
    need rsync
    rsync_port=$(port)
    mkdir -p tree/many tree/deep/er incoming
    random_file tree/large 20000003
    random_file tree/deep/er/middle 300000
    head -c 400000 /dev/urandom | split -b 2001 - tree/many/
    ln -s ../large tree/deep/link
    chmod 640 tree/large
    # Root's daemon becomes nobody otherwise, who may not write here.
    [ "$(id -u)" != 0 ] || printf 'uid = 0\ngid = 0\n' >rsyncd.conf
    cat >>rsyncd.conf <<END
use chroot = no
munge symlinks = no
log file = $DIR/rsyncd.log
pid file = $DIR/rsyncd.pid
lock file = $DIR/rsyncd.lock
[tree]
path = $DIR/tree
[incoming]
path = $DIR/incoming
read only = no
END
    serve rsync --daemon --no-detach --address=127.0.0.1 --port="$rsync_port" --config="$DIR/rsyncd.conf"
    await_port "$rsync_port"
    url=rsync://127.0.0.1:$rsync_port
}

rsync_run() {
    client rsync "$@" >rsync.log 2>&1 || fail "rsync: $(tail -n 1 rsync.log)"
}

same_tree() {
    diff -r --no-dereference "$1" "$2" >diff.log 2>&1 || fail "$(head -n 1 diff.log)"
    [ "$(cd "$1" && find . -printf '%p %m %s %l\n' | sort)" = "$(cd "$2" && find . -printf '%p %m %s %l\n' | sort)" ] ||
        fail "$1 and $2 have other modes, sizes or links"
}

# Both ways, and compressed; then nothing is left to be done, as checksums say.
case_rsync_daemon() {
    rsync_start
    rsync_run -a "$url/tree/" got/
    same_tree tree got
    rsync_run -a tree/ "$url/incoming/"
    same_tree tree incoming
    rsync_run -az "$url/tree/" compressed/
    same_tree tree compressed
    rsync_run -a --checksum --itemize-changes "$url/tree/" got/
    [ ! -s rsync.log ] || fail "not in sync: $(head -n 1 rsync.log)"
    rsync_run -a --checksum --itemize-changes tree/ "$url/incoming/"
    [ ! -s rsync.log ] || fail "not in sync: $(head -n 1 rsync.log)"
    rsync_run "$url/"
    grep -q '^tree' rsync.log || fail "no list of modules"
}

# What differs is sent in pieces, what is gone is deleted, what is too fast is held back.
case_rsync_changes() {
    rsync_start
    rsync_run -a "$url/tree/" got/
    # In the middle, at the end, and before the beginning.
    { head -c 100 /dev/urandom; head -c 7000000 got/large; echo changed; tail -c +7000500 got/large; echo more; } >tree/large
    rm tree/many/*b
    echo new >tree/new
    rsync_run -a --no-whole-file --delete --stats "$url/tree/" got/
    same_tree tree got
    [ "$(sed -n 's/,//g; s/^Literal data: \([0-9]*\) bytes$/\1/p' rsync.log)" -lt 1000000 ] || fail "all was sent again"
    rsync_run -a tree/ "$url/incoming/"
    cp got/large saved
    head -c 12000000 saved >tree/large
    rsync_run -a --no-whole-file --delete --inplace tree/ "$url/incoming/"
    same_tree tree incoming
    rsync_run -a --bwlimit=20M "$url/tree/large" slow/
    same_file tree/large slow/large
}
