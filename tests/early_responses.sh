#!/usr/bin/env bash
# Tests early responses: the server answers a request before the body of the request arrives. Afterwards the connection is used again, and
# each later request must get its response, too. This is tested on direct connections and behind proxies with a connection pool.
#
#   tests/early_responses.sh           640 early responses on direct connections, and as many behind each proxy
#   tests/early_responses.sh --long    10,000
#   COUNTERPART_BIN=…                the binary (default: the debug build)
#
# Needs python3. Proxies that are not installed (haproxy, nginx) are skipped, with a message.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/script_steps.sh
. tests/contract/server.sh

case "${1:-}" in
    "") count=640 ;;
    --long) count=10000 ;;
    *) echo "usage: tests/early_responses.sh [--long]" >&2 && exit 2 ;;
esac

. tests/temporary_folder.sh
proxy=
stop_proxy() {
    [ -n "$proxy" ] || return 0
    kill "$proxy" 2>/dev/null || true
    wait "$proxy" 2>/dev/null || true
    proxy=
}
at_the_end() {
    stop_proxy
    stop_server
}

PATH=$PATH:/usr/sbin
start_server "${COUNTERPART_BIN:-${CARGO_TARGET_DIR:-target}/debug/counterpart}" "$scratch/store"
server_address=${base#http://}

# ask WHAT ADDRESS: runs early_responses.py against the server or a proxy at this address.
ask() {
    printf '== %s, %s ' "$1" "$2"
    python3 tests/early_responses.py "$2" "$key" "$count" || fail "early answers, $1"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# through NAME PROGRAM ARGUMENTS…: starts a proxy on $port, and runs early_responses.py through it.
through() {
    local name=$1
    shift
    "$@" >"$scratch/$name.log" 2>&1 &
    proxy=$!
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        kill -0 "$proxy" 2>/dev/null || { cat "$scratch/$name.log" >&2 && fail "start $name"; }
        sleep 0.05
    done
    ask "$name" "127.0.0.1:$port"
    stop_proxy
}

ask "direct connections" "$server_address"

# Both proxies are configured not to retry a request that the server did not answer.
if command -v haproxy >/dev/null; then
    port=$(free_port)
    cat >"$scratch/haproxy.cfg" <<END
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    retries 0
    option http-keep-alive
    http-reuse always
frontend callers
    bind 127.0.0.1:$port
    default_backend counterpart
backend counterpart
    server one $server_address
END
    through haproxy haproxy -db -f "$scratch/haproxy.cfg"
else
    echo "== skipped: haproxy is not installed"
fi

# By default, nginx buffers a request body before it connects to the server. Without this buffering, nginx closes the client's connection
# when a response is early. So the test leaves the buffering on.
if command -v nginx >/dev/null; then
    port=$(free_port)
    mkdir -p "$scratch/nginx"
    cat >"$scratch/nginx.conf" <<END
daemon off;
pid $scratch/nginx/pid;
error_log $scratch/nginx/errors;
events {}
http {
    access_log off;
    client_body_temp_path $scratch/nginx/bodies;
    proxy_temp_path $scratch/nginx/proxied;
    fastcgi_temp_path $scratch/nginx/fastcgi;
    uwsgi_temp_path $scratch/nginx/uwsgi;
    scgi_temp_path $scratch/nginx/scgi;
    client_max_body_size 8m;
    upstream counterpart {
        server $server_address;
        keepalive 16;
    }
    server {
        listen 127.0.0.1:$port;
        location / {
            proxy_pass http://counterpart;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_next_upstream off;
        }
    }
}
END
    chmod -R a+rwX "$scratch"
    through nginx nginx -p "$scratch/nginx" -c "$scratch/nginx.conf"
else
    echo "== skipped: nginx is not installed"
fi
