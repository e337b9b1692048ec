# Faults of a job with a fixed number of hosts and without restarts: it ends everywhere, with the
# reason.
# shellcheck shell=bash

# fault NAME INFLICT CODE1 LINE1 CODE2 LINE2 SECONDS: exit code and line of the agents of host1 and
# host2. CODE "-": that host is not checked.
fault() { eval "test_${1// /_}() { GROUP_TIMEOUT=${GROUP_TIMEOUT:-60}; inflict_on_fixed_job $(printf '%q ' "${@:2}"); }"; }
inflict_on_fixed_job() { # INFLICT CODE1 LINE1 CODE2 LINE2 SECONDS
  fixed_job
  local begin i
  begin=$(now)
  eval "$1"
  for i in 1 2; do
    local code=$((i * 2)) line=$((i * 2 + 1))
    [ "${!code}" = - ] || { ends "host$i" 60 "${!code}"; says "${!line}"; }
  done
  figure "both agents ended after $(since "$begin") s"
  at_most "$(since "$begin")" "$6"
}

fault "a worker is killed" "kill_worker 2" 137 'rank [23] \(.*host2.*SIGKILL' 137 'rank [23] \(.*host2.*SIGKILL' 20
GROUP_TIMEOUT=4 fault "a worker is stopped" "stop_worker 2" 1 'rank [23] did not come' 1 'rank [23] did not come' 40
fault "an agent is killed" "kill_agent 2" 1 'rank [23]: closed the connection|host 1.*host2' - - 15
fault "the first agent is killed" "kill_agent 1" - - 1 'host 0|host1' 15
# Nothing can replace the host, so it may be silent for 30 s.
fault "a host loses its power" "host_off 2" 1 'agent of host 1 \(host2\)|rank [23] \(host2\)' - - 45
fault "a link is cut for good" "host_cut 2" 1 'agent of host 1 \(host2\)|rank [23] \(host2\)' 1 'agent of host 0 \(.*host1|rank [01] \(host1\)' 45

test_a_link_that_is_cut_for_a_while_ends_nothing() {
  GROUP_TIMEOUT=60 fixed_job
  host_cut 2
  sleep 4
  host_heal 2
  : >"$STOP"
  local host
  for host in host1 host2; do ends "$host" 60 0; done
  says '[0-9]+ steps'
}
