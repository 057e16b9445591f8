# shellcheck shell=bash
declare_case http_server_downloads 30
declare_case http_server_uploads 30
declare_case asyncio_downloads 30
declare_case asyncio_uploads 30
declare_case asyncio_many 40

# http_start SCRIPT: one of the servers, with files to serve.
http_start() {
    need python3 curl
    local http_port
    http_port=$(port)
    mkdir www
    random_file www/small 1000
    random_file www/middle 100000
    random_file www/large 20000003
    serve "$(python)" "$home/servers/$1" "$http_port" "$DIR/www"
    await_port "$http_port"
    url=http://127.0.0.1:$http_port
}

# One connection for all; the digest that the server computed comes in a header.
downloads() {
    local options=() file turn
    for turn in 1 2 3; do
        for file in small middle large; do options+=(-o "got.$file.$turn" "$url/$file"); done
    done
    client curl -sS -f --dump-header headers "${options[@]}"
    for turn in 1 2 3; do
        for file in small middle large; do same_file www/$file "got.$file.$turn"; done
    done
    [ "$(tr -d '\r' <headers | grep -ci '^x-digest: ')" = 9 ] || fail "digests are missing"
    [ "$(tr -d '\r' <headers | awk 'tolower($1) == "x-digest:" { print $2 }' | sort -u)" = \
        "$(sha256sum www/* | awk '{ print $1 }' | sort -u)" ] || fail "the server's digests are others"
}

# Bodies of known and of unknown length; the server answers with the digest of what it got.
uploads() {
    local file answer
    for file in small middle large; do
        answer=$(client curl -sS -f --data-binary "@www/$file" -H 'Expect:' "$url/upload")
        [ "$answer" = "$(sha256sum <www/$file | cut -d' ' -f1)" ] || fail "digest of $file: $answer"
    done
    answer=$(client curl -sS -f -T - "$url/upload" <www/large)
    [ "$answer" = "$(sha256sum <www/large | cut -d' ' -f1)" ] || fail "digest of a chunked upload: $answer"
}

case_http_server_downloads() { http_start http_server.py; downloads; }
case_http_server_uploads() { http_start http_server.py; uploads; }
case_asyncio_downloads() { http_start asyncio_server.py; downloads; }
case_asyncio_uploads() { http_start asyncio_server.py; uploads; }

# Twenty at a time.
case_asyncio_many() {
    http_start asyncio_server.py
    local options=() turn
    for turn in $(seq 20); do options+=(-o "got.$turn" "$url/middle" -o "got.large.$turn" "$url/large"); done
    client curl -sS -f --parallel --parallel-max 20 "${options[@]}"
    for turn in $(seq 20); do
        same_file www/middle "got.$turn"
        same_file www/large "got.large.$turn"
    done
}
