# Starts and stops a Citus cluster of three nodes on loopback: a coordinator and two workers. To be sourced after tests/postgres_servers.sh.
# Needs a PostgreSQL that has the extension Citus.

# Whether the PostgreSQL that tests/postgres_servers.sh finds has the extension.
has_citus() {
    local config=${CITUS_PG_CONFIG:-$(command -v pg_config || true)} initdb
    [ -n "$config" ] && [ -f "$("$config" --sharedir)/extension/citus.control" ] || return
    # tests/postgres_servers.sh starts the newest PostgreSQL of the machine. That PostgreSQL must be the one with the extension.
    initdb=$(find /usr/lib/postgresql /usr/local/pgsql /opt/homebrew/opt -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
    [ "$(dirname "$initdb")" = "$("$config" --bindir)" ]
}

# start_node FOLDER [SETTING=VALUE…]: starts one node; sets `postgres` to its address.
start_node() {
    mkdir -p "$1"
    # The nodes have no certificates, so `citus.node_conninfo` turns off TLS between them. The limits of the statement statistics are so
    # large that no counted statement is dropped.
    start_postgres "$1" fsync=off full_page_writes=off shared_preload_libraries=citus,pg_stat_statements \
        citus.stat_statements_track=all citus.stat_statements_max=500000 citus.stat_statements_purge_interval=0 \
        pg_stat_statements.max=200000 wal_level=logical \
        max_worker_processes=300 max_prepared_transactions=400 citus.shard_count=8 citus.node_conninfo=sslmode=disable \
        max_wal_senders=20 max_replication_slots=20 "${@:2}" || return
    # To move a store to another node, Citus decodes the write-ahead log with a library of its own. Recent versions of PostgreSQL permit
    # this only if the setting names the library.
    if [ "$(psql -qXAt "$postgres" -c "SELECT COUNT(*) FROM pg_settings WHERE name = 'output_plugin_libraries'")" = 1 ]; then
        psql -qXAt "$postgres" -c "ALTER SYSTEM SET output_plugin_libraries = pgoutput, citus" -c "SELECT pg_reload_conf()" >/dev/null
    fi
}

port_of() {
    local address=${1##*:}
    echo "${address%%/*}"
}

# start_cluster FOLDER [SETTING=VALUE…]: starts the nodes. Sets `coordinator`, `worker1` and `worker2` to their addresses.
start_cluster() {
    start_node "$1/coordinator" "${@:2}" && coordinator=$postgres || return
    start_node "$1/worker1" "${@:2}" && worker1=$postgres || return
    start_node "$1/worker2" "${@:2}" && worker2=$postgres || return
}

# make_cluster_database NAME [NODES]: creates a database on each of the first NODES nodes (default: 3), and makes them one cluster. If NODES
# is 1, the coordinator stores the data itself.
make_cluster_database() {
    local node nodes=("$coordinator" "$worker1" "$worker2")
    for node in "${nodes[@]:0:${2:-3}}"; do
        psql -qX "$node" -c "CREATE DATABASE $1"
        psql -qX "${node%/*}/$1" -c 'CREATE EXTENSION citus' -c 'CREATE EXTENSION pg_stat_statements'
    done 2>/dev/null
    psql -qXAt "${coordinator%/*}/$1" -c "SELECT citus_set_coordinator_host('127.0.0.1', $(port_of "$coordinator"))" >/dev/null
    for node in "${nodes[@]:1:${2:-3}-1}"; do
        psql -qXAt "${coordinator%/*}/$1" -c "SELECT citus_add_node('127.0.0.1', $(port_of "$node"))" >/dev/null
    done
    [ "${2:-3}" -gt 1 ] || psql -qXAt "${coordinator%/*}/$1" \
        -c "SELECT citus_set_node_property('127.0.0.1', $(port_of "$coordinator"), 'shouldhaveshards', true)" >/dev/null
}

stop_cluster() {
    local node
    for node in coordinator worker1 worker2; do stop_postgres "$1/$node"; done
}
