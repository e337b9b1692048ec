# Surroundings of a job: ports, disks, secrets, strangers.
# shellcheck shell=bash

node() { # I OPTIONS...: begins agent I-1 of two; the endpoint is host1's port 29400
  agent "host$1" --nnodes 2 --node_rank $(($1 - 1)) --master_addr host1 --master_port 29400 "${@:2}" \
    -- "$BIN/cluster_worker" "$STOP"
}
ends_well() { # hostI...: told to stop, the job does so
  : >"$STOP"
  local host
  for host in "$@"; do ends "$host" 30 0; done
  says '[0-9]+ steps'
}

squatter() { # has port 29400 of host1, and answers nobody there
  begin squatter on host1 /usr/bin/python3 -c \
    'import socket, time; s = socket.create_server(("", 29400)); print("there", flush=True); time.sleep(60)'
  shows squatter 20 there
}

test_port_of_the_first_node_is_taken() {
  rm -f "$STOP"
  squatter
  node 1
  ends host1 30 2
  says '29400 is already in use'
  kill "$(pids_on 1 create_server)"
}

test_port_of_the_endpoint_is_taken() {
  squatter
  local i
  for i in 1 2; do
    agent "host$i" --nnodes 2 --rdzv_backend c10d --rdzv_endpoint "$ENDPOINT" --rdzv_conf join_timeout=8 -- true
  done
  shows host1 20 'waits for others at host1:29400; .* port 29400 is already in use, by process [0-9]+ \(python3\)'
  shows host2 20 'waits for others at host1:29400$'
  ends host1 40 1
  says 'error.* port 29400 is already in use, by process [0-9]+ \(python3\)'
  ends host2 40 1
  kill "$(pids_on 1 create_server)"
}

# Two agents meet by c10d at host1, whose own name means 127.0.1.1 there, as Debian's installer has
# it. Elsewhere the name means host1's address.
meet_at_debian() { # NODE_RANK OPTIONS...: host1's
  local job=(--nproc_per_node 2 --nnodes 2 --rdzv_backend c10d --rdzv_endpoint "$ENDPOINT")
  rm -f "$STOP"
  sed 's/.* host1$/127.0.1.1 host1/' /etc/hosts >"$SHARED/etc/hosts_of_host1"
  begin host1 on host1 env LOCKSTEP_SECRET=between-us unshare --mount sh -c 'mount --bind "$0" /etc/hosts; exec "$@"' \
    "$SHARED/etc/hosts_of_host1" "$BIN/lockstep" run "${job[@]}" --node_rank "$1" "${@:2}" -- "$BIN/cluster_worker" "$STOP"
  agent host2 "${job[@]}" --node_rank $((1 - $1)) -- "$BIN/cluster_worker" "$STOP"
  shows host2 40 'rank [0-3]/4 .*first step'
  ends_well host1 host2
}
test_the_endpoints_host_has_its_name_at_loopback() { meet_at_debian 0; }
test_the_endpoints_host_has_its_name_at_loopback_and_not_rank_0() { meet_at_debian 1; }
test_a_name_at_loopback_is_announced() { meet_at_debian 0 --local_addr host1; }

test_a_host_whose_loopback_device_is_down() {
  begin alone on host1 unshare -n "$BIN/lockstep" run --nproc_per_node 2 -- "$BIN/cluster_worker" "$STOP"
  ends alone 20 1
  says '127.0.0.1:[0-9]+: Network is unreachable; is the device lo up\?'
}

test_without_a_secret_between_hosts() {
  SECRET='' node 1
  SECRET='' node 2
  ends host1 30 2
  says 'LOCKSTEP_SECRET'
  ends host2 30 2
  says 'LOCKSTEP_SECRET'
}

test_a_wrong_secret_is_refused_and_the_right_one_still_joins() {
  rm -f "$STOP"
  node 1
  shows host1 20 'waiting for host 1'
  SECRET=another node 2
  ends host2 30 2
  says 'secret from the variable LOCKSTEP_SECRET: compare'
  [ "$(grep -c "10.1.1.2:.* does not know this job's secret" "$OUTPUT.host1")" = 1 ] || fail "not said once on host1"
  node 2
  shows host1 30 'rank 0/4 .*first step'
  ends_well host1 host2
}

test_encrypted_links_and_a_host_without() {
  rm -f "$STOP"
  LOCKSTEP_TLS=1 node 1
  shows host1 20 'waiting for host 1'
  node 2
  ends host2 30 2
  says 'uses TLS only: set LOCKSTEP_TLS=1 here too'
  [ "$(grep -c "10.1.1.2:.* does not use TLS" "$OUTPUT.host1")" = 1 ] || fail "not said once on host1"
  LOCKSTEP_TLS=1 node 2
  shows host1 30 'rank 0/4 .*first step'
  ends_well host1 host2
}

listening() { on "$1" ss -Hltn | awk '{ sub(/.*:/, "", $4); print $4 }' | grep -v '^22$' | sort -u; }
garbage() { # FROM TO: random bytes, a long line and silence for every port that is open there
  local port
  for port in $(listening "$2"); do
    echo "  garbage for $2:$port"
    on "$1" timeout 5 bash -c "head -c 300000 /dev/urandom >/dev/tcp/$2/$port" || true
    on "$1" timeout 5 bash -c "{ printf 'GET / HTTP/1.1'; head -c 70000 /dev/zero | tr '\\0' x; } >/dev/tcp/$2/$port" || true
    begin "silence$port" on "$1" bash -c "exec 3<>/dev/tcp/$2/$port; exec sleep 5"
  done
}
test_garbage_on_every_port_before_and_while_the_job_runs() {
  rm -f "$STOP"
  node 1
  shows host1 20 'waiting for host 1'
  garbage host3 host1
  node 2
  shows host1 30 'rank 0/4 .*first step'
  garbage host3 host1
  garbage host3 host2
  ends_well host1 host2
}

test_the_disk_of_the_log_folder_is_full() {
  rm -f "$STOP"
  on host1 mkdir /tmp/small
  on host1 mount -t tmpfs -o size=32k tmpfs /tmp/small
  agent host1 --log_dir /tmp/small -- sh -c 'i=0; while [ $i -lt 2000 ]; do echo "a line that takes room $i"; i=$((i+1)); done; echo end of $RANK'
  ends host1 60 0
  says 'end of 0' 'end of 1' '/tmp/small.*[Nn]o space left'
  on host1 umount /tmp/small
  on host1 rmdir /tmp/small
}

# A signal has no default action for the first process of a namespace, such as an agent in a
# container.
test_sigterm_ends_a_first_process_that_waits_for_others() {
  local rank
  for rank in 0 1; do
    rm -f "$STOP"
    begin first on host1 env LOCKSTEP_SECRET=between-us sh -c 'stop=$1; shift; unshare --pid --fork "$@" &
      until [ -e "$stop" ]; do sleep 0.05; done; kill -TERM $(cat /proc/$!/task/$!/children); wait $!' sh "$STOP" \
      "$BIN/lockstep" run --nnodes 2 --node_rank "$rank" --master_addr host1 --master_port 29400 -- sleep 600
    shows first 30 "wait(s|ing) for host $((1 - rank))"
    : >"$STOP"
    ends first 20 143
  done
}
