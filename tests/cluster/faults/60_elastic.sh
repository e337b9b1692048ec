# Faults that a job survives: it goes on with the remaining hosts, in a new generation.
# shellcheck shell=bash

elastic_job() { # MIN:MAX COUNT OPTIONS...: agents on the first COUNT hosts
  rm -f "$STOP"
  local i
  for ((i = 1; i <= $2; i++)); do elastic_agent "$i" --nnodes "$1" "${@:3}"; done
  shows host1 40 "rank [0-9]*/$((2 * $2)) .*first step" # the first to come has rank 0
}
elastic_agent() { # I OPTIONS...
  agent "host$1" "${MEETING[@]}" --rdzv_id one --max_restarts 3 "${@:2}" -- "$BIN/cluster_worker" "$STOP" "${GROUP_TIMEOUT:-60}"
}
stop_agent() { kill -STOP $(the_agent "$1"); }
resume_agent() { resume_with_callers $(the_agent "$1"); }
MEETING=(--rdzv_backend c10d --rdzv_endpoint "$ENDPOINT")

# Time of the first step of a world of that size after a given time, as seen by one host.
first_step() { # HOST WORLD AFTER
  awk -v world="/$2 " -v after="$3" '/first step at/ && index($0, world) && $NF > after { print $NF; found = 1; exit } END { exit !found }' \
    "$OUTPUT.$1"
}
steps_again() { # HOST WORLD AFTER SECONDS: and prints how long that took
  until_true 60 first_step "$1" "$2" "$3" || { cp "$OUTPUT.$1" "$OUTPUT"; fail "[$1] no step of $2 ranks"; }
  local took
  took=$(awk -v a="$3" -v b="$(first_step "$1" "$2" "$3")" 'BEGIN { printf "%.2f", b - a }')
  figure "$2 ranks step again after $took s"
  at_most "$took" "$4"
}

# survives NAME MIN:MAX COUNT INFLICT SURVIVORS WORLD SECONDS LINE [THEN]: a survivor prints LINE.
survives() { eval "test_${1// /_}() { GROUP_TIMEOUT=${GROUP_TIMEOUT:-60}; inflict_on_elastic_job $(printf '%q ' "${@:2}"); }"; }
inflict_on_elastic_job() {
  local range=$1 count=$2 inflict=$3 survivors=$4 world=$5 seconds=$6 line=$7 then=${8:-} first=${4%% *}
  elastic_job "$range" "$count"
  local begin
  begin=$(now)
  eval "$inflict"
  steps_again "$first" "$world" "$begin" "$seconds"
  # shellcheck disable=SC2086
  one_shows 20 "$line" $survivors
  eval "$then"
  # shellcheck disable=SC2086
  ends_well $survivors
}

survives "a killed worker starts again" 2:2 2 "kill_worker 2" "host1 host2" 4 15 'host2.*SIGKILL'
GROUP_TIMEOUT=4 survives "a stopped worker starts again" 2:2 2 "stop_worker 2" "host1 host2" 4 30 'rank [0-9] did not come'
survives "the job goes on without a killed agent" 1:2 2 "kill_agent 2" host1 2 15 'host2'
survives "the job goes on without a host that lost its power" 1:2 2 "host_off 2" host1 2 15 'host2'
survives "another serves when the first agent is killed" 2:3 3 "kill_agent 1" "host2 host3" 4 15 'host1'
survives "another serves when the first host loses its power" 2:3 3 "host_off 1" "host2 host3" 4 15 'host1'
survives "a host behind a cut link comes back when it heals" 2:3 3 "host_cut 3" "host1 host2 host3" 4 15 'host3' \
  'begin=$(now); host_heal 3; steps_again host1 6 "$begin" 30'
survives "a stopped agent comes back when it goes on" 1:2 2 "stop_agent 2" "host1 host2" 2 15 'host2' \
  'begin=$(now); resume_agent 2; steps_again host1 4 "$begin" 30'
survives "a paused host comes back when it goes on" 1:2 2 "host_pause 2" "host1 host2" 2 15 'host2' \
  'begin=$(now); host_resume 2; steps_again host1 4 "$begin" 30'
survives "a host comes later" 1:2 1 "elastic_agent 2 --nnodes 1:2" "host1 host2" 4 15 'host more came'

# Workers that ignore SIGTERM continuously record their generation. A host whose agent is cut off
# has none left when the others begin the next generation.
LIFE='trap "" TERM; while [ ! -e "$0" ]; do echo "$LOCKSTEP_GENERATION $(date +%s.%N)" >>"$1.$HOSTNAME"; sleep 0.05; done'
living_in() { tail -n 1 "$SHARED/lives.host$1" | cut -d' ' -f1; }
all_live_in_one() { [ -n "$(living_in 1)" ] && [ "$(living_in 1)" = "$(living_in 2)" ] && [ "$(living_in 1)" = "$(living_in 3)" ]; }
test_no_two_generations_run_side_by_side() {
  rm -f "$STOP" "$SHARED"/lives.*
  local i generation last next
  for i in 1 2 3; do
    agent "host$i" "${MEETING[@]}" --rdzv_id one --nnodes 2:3 --shutdown_timeout 8 -- sh -c "$LIFE" "$STOP" "$SHARED/lives"
  done
  until_true 60 all_live_in_one || fail "no generation of three hosts"
  generation=$(living_in 1)
  host_cut 1
  for i in 2 3; do
    until_true 60 grep -q "^$((generation + 1)) " "$SHARED/lives.host$i" || fail "host$i does not go on"
  done
  sleep 4
  last=$(tail -n 1 "$SHARED/lives.host1" | cut -d' ' -f2)
  next=$(grep -h "^$((generation + 1)) " "$SHARED"/lives.host[23] | cut -d' ' -f2 | sort -n | head -n 1)
  figure "$(awk -v a="$last" -v b="$next" 'BEGIN { printf "%.2f", b - a }') s between generations"
  awk -v a="$last" -v b="$next" 'BEGIN { exit !(a < b) }' || fail "generation $generation lived until $last on host1, the next began at $next"
  : >"$STOP"
  for i in 2 3; do ends "host$i" 30 0; done
  kill_agent 1
  ends host1 30 137
}
