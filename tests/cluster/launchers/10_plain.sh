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

# PyTorch's four variables alone: the ranks determine which of them share a host.
four_names() { # NAME HOSTS... -- VARIABLES...: four ranks, two on each host or all on one
  local name=$1 rank hosts=()
  shift
  while [ "$1" != -- ]; do hosts+=("$1"); shift; done
  shift
  trainer "$name"
  for rank in 0 1 2 3; do
    begin "$rank" on "${hosts[$((rank * ${#hosts[@]} / 4))]}" env RANK="$rank" WORLD_SIZE=4 "$@" "${TRAIN[@]}"
  done
  for rank in 0 1 2 3; do ends "$rank" 60 0; done
  same_weights "$name" 4
}
test_four_names_by_the_hosts_own_name_without_a_secret() {
  four_names own_name host1 -- MASTER_ADDR=host1 MASTER_PORT=29500
}
test_four_names_over_two_hosts() {
  four_names names2 host1 host2 -- MASTER_ADDR=host1 MASTER_PORT=29500 LOCKSTEP_SECRET=between-us
}
test_a_folder_alone_over_two_hosts() {
  mkdir -p "$SHARED/meeting"
  four_names folder2 host1 host2 -- LOCKSTEP_RENDEZVOUS_DIR="$SHARED/meeting"
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

# A name with an IPv6 address and no other.
test_lockstep_run_over_two_hosts_of_ipv6() {
  local node
  trainer six
  for node in 0 1; do
    begin "$node" on "host$((node + 1))" env LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nnodes 2 --node_rank "$node" \
      --nproc_per_node 2 --master_addr six1 --master_port 29500 -- "${TRAIN[@]}"
  done
  for node in 0 1; do ends "$node" 60 0; done
  same_weights six 4
}
test_four_names_over_two_hosts_of_ipv6() {
  four_names names6 host1 host2 -- MASTER_ADDR=six1 MASTER_PORT=29500 LOCKSTEP_SECRET=between-us
}

# Agents that meet at a store that none of them serves.
etcd_up
run_by() { # NAME BACKEND ENDPOINT
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
