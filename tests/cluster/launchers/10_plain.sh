# No launcher at all, and our own.
# shellcheck shell=bash

test_plain_variables_on_one_host() {
  local rank
  trainer plain
  for rank in 0 1 2 3; do
    begin "$rank" on host1 env RANK="$rank" WORLD_SIZE=4 LOCAL_RANK="$rank" LOCAL_WORLD_SIZE=4 \
      MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "${TRAIN[@]}"
  done
  for rank in 0 1 2 3; do ends "$rank" 60 0; done
  same_weights plain 4
}

test_plain_variables_over_two_hosts() {
  local rank
  trainer plain2
  for rank in 0 1 2 3; do
    begin "$rank" on "host$((rank / 2 + 1))" env RANK="$rank" WORLD_SIZE=4 LOCAL_RANK="$((rank % 2))" LOCAL_WORLD_SIZE=2 \
      MASTER_ADDR=host1 MASTER_PORT=29500 LOCKSTEP_SECRET=between-us "${TRAIN[@]}"
  done
  for rank in 0 1 2 3; do ends "$rank" 60 0; done
  same_weights plain2 4
}

test_lockstep_run_over_two_hosts() {
  local node
  trainer static
  for node in 0 1; do
    begin "$node" on "host$((node + 1))" env LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nnodes 2 --node_rank "$node" \
      --nproc_per_node 2 --master_addr host1 --master_port 29500 -- "${TRAIN[@]}"
  done
  for node in 0 1; do ends "$node" 60 0; done
  same_weights static 4
}

# Agents that meet where none of them serves.
etcd_up
run_by() { # NAME BACKEND PLACE
  local host
  trainer "$1"
  for host in host1 host2; do
    begin "$host" on "$host" env LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nnodes 2 --nproc_per_node 2 \
      --rdzv_backend "$2" --rdzv_endpoint "$3" --rdzv_id job -- "${TRAIN[@]}"
  done
  for host in host1 host2; do ends "$host" 60 0; done
  same_weights "$1" 4
}
test_lockstep_run_over_two_hosts_by_etcd() { run_by etcd etcd head:2379; }
test_lockstep_run_over_two_hosts_by_a_shared_folder() { run_by folder file "$SHARED/meet"; }
