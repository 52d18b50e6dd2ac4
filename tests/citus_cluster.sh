# Starts and stops a Citus cluster of three nodes on loopback: a coordinator and two workers. To be sourced after tests/postgres.sh.
# Needs a PostgreSQL that has the extension Citus.

# Whether the PostgreSQL that tests/postgres.sh finds has the extension.
has_citus() {
    local config=${CITUS_PG_CONFIG:-$(command -v pg_config || true)}
    [ -n "$config" ] && [ -f "$("$config" --sharedir)/extension/citus.control" ]
}

# start_node FOLDER [SETTING=VALUE…]: starts one node; sets `postgres` to its address.
start_node() {
    mkdir -p "$1"
    # `citus.node_conninfo`: the nodes are on this machine, and have no certificates.
    start_postgres "$1" fsync=off synchronous_commit=off full_page_writes=off shared_preload_libraries=citus wal_level=logical \
        max_worker_processes=300 max_prepared_transactions=400 citus.shard_count=8 citus.node_conninfo=sslmode=disable \
        citus.max_cached_conns_per_worker=1 citus.local_shared_pool_size=-1 max_wal_senders=20 max_replication_slots=20 "${@:2}"
}

port_of() {
    local address=${1##*:}
    echo "${address%%/*}"
}

# start_cluster FOLDER [SETTING=VALUE…]: starts the nodes. Sets `coordinator`, `worker1` and `worker2` to their addresses.
start_cluster() {
    start_node "$1/coordinator" "${@:2}" && coordinator=$postgres
    start_node "$1/worker1" "${@:2}" && worker1=$postgres
    start_node "$1/worker2" "${@:2}" && worker2=$postgres
}

# make_cluster_database NAME: creates a database on each node, and makes them one cluster.
make_cluster_database() {
    local node
    for node in "$coordinator" "$worker1" "$worker2"; do
        psql -qX "$node" -c "CREATE DATABASE $1"
        psql -qX "${node%/*}/$1" -c 'CREATE EXTENSION citus'
    done 2>/dev/null
    psql -qXAt "${coordinator%/*}/$1" -c "SELECT citus_set_coordinator_host('127.0.0.1', $(port_of "$coordinator"));
        SELECT citus_add_node('127.0.0.1', $(port_of "$worker1")); SELECT citus_add_node('127.0.0.1', $(port_of "$worker2"))" >/dev/null
}

stop_cluster() {
    local node
    for node in coordinator worker1 worker2; do stop_postgres "$1/$node"; done
}
