# The job for fault injection: one agent a host, two ranks each, which step until they are told to
# stop.
# shellcheck shell=bash
for i in 1 2 3; do host_boot "$i"; done
STOP=$SHARED/stop
ENDPOINT=host1:29400

agent() { # hostI OPTIONS... -- WORKER...: begins an agent there, tagged with the host's name
  begin "$1" on "$1" env LOCKSTEP_SECRET="${SECRET-between-us}" "$BIN/lockstep" run --nproc_per_node 2 "${@:2}"
}
fixed_job() { # OPTIONS...: two hosts; none may be missing, nothing is tried again
  rm -f "$STOP"
  local node
  for node in 0 1; do
    agent "host$((node + 1))" --nnodes 2 --node_rank "$node" --master_addr host1 --master_port 29400 "$@" \
      -- "$BIN/cluster_worker" "$STOP" "${GROUP_TIMEOUT:-60}"
  done
  shows host1 30 'rank 0/4 .*first step'
}

# Faults to inject; pids are those of the segment.
a_worker() { pids_on "$1" '^[^ ]*cluster_worker ' | head -n 1; }
the_agent() { pids_on "$1" '^[^ ]*lockstep run '; }
nothing() { :; }
kill_worker() { kill -KILL "$(a_worker "$1")"; }
stop_worker() { kill -STOP "$(a_worker "$1")"; }
kill_agent() { kill -KILL "$(the_agent "$1" | head -n 1)"; } # not the watchdog, which cleans up
