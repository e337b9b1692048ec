# lockstep run -H: one command starts the agents of other hosts by ssh.
# shellcheck shell=bash
started_ranks() { # HOST LIST: the job that a command on HOST starts; its ranks step until they are told to stop
  rm -f "$SHARED/stop"
  LOCKSTEP_SECRET=between-us begin starter on "$1" "$BIN/lockstep" run -H "$2" -- "$BIN/cluster_worker" "$SHARED/stop"
}
no_ranks() { [ -z "$(pids_on 1 cluster_worker)$(pids_on 2 cluster_worker)$(pids_on 3 cluster_worker)" ]; }

test_lockstep_run_starts_this_host_and_another() {
  started_ranks host1 host1:2,host2:2
  shows starter 60 'rank 3/4 node 1/2 .*first step'
  [ -z "$(pids_on 1 between-us)$(pids_on 2 between-us)" ] || fail "the secret is on a command line"
  touch "$SHARED/stop"
  ends starter 60 0
  says 'rank 0/4 node 0/2 .*steps' 'rank 1/4 node 0/2 .*steps' 'rank 2/4 node 1/2 .*steps' 'rank 3/4 node 1/2 .*steps'
}

# Rank 0 is on another host than the command.
test_lockstep_run_starts_two_other_hosts_by_file() {
  touch "$SHARED/stop"
  printf '%s slots=2\n' host2 host3 >"$SHARED/hostfile"
  within 60 0 on host1 "$BIN/lockstep" run --hostfile "$SHARED/hostfile" -- "$BIN/cluster_worker" "$SHARED/stop"
  says 'rank 0/4 node 0/2 .*steps' 'rank 3/4 node 1/2 .*steps'
}

test_lockstep_run_names_a_host_that_it_does_not_reach() {
  within 60 255 on host1 "$BIN/lockstep" run -H host1:2,host2:2,host16:2 -- "$BIN/cluster_worker" "$SHARED/never-there"
  says 'host16: no agent could be started there'
  until_true 30 no_ranks || fail "ranks are left"
}

test_a_killed_lockstep_run_leaves_nothing_on_any_host() {
  started_ranks host1 host2:2,host3:2
  shows starter 60 'rank 3/4 node 1/2 .*first step'
  kill -KILL $(pids_on 1 'lockstep run -H')
  ends starter 30 137
  until_true 30 no_ranks || fail "ranks are left"
}
