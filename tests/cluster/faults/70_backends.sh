# Faults of jobs whose agents meet at a store that none of them serves: in etcd, or in a folder.
# shellcheck shell=bash
etcd_up
BY_ETCD=(--rdzv_backend etcd --rdzv_endpoint head:2379)
BY_FOLDER=(--rdzv_backend file --rdzv_endpoint "$SHARED/meet")

test_etcd_is_killed_and_comes_back_while_the_job_runs() {
  local MEETING=("${BY_ETCD[@]}") begin
  elastic_job 1:3 2
  etcd_kill
  sleep 3 # longer than an agent may be silent
  etcd_up
  begin=$(now)
  elastic_agent 3 --nnodes 1:3
  steps_again host1 6 "$begin" 30
  figure "$(($(grep -c 'first step' "$OUTPUT.host1") / 2)) generations"
  ends_well host1 host2 host3
}

# A job leaves its keys, among them the failure of its generation 1; the next job of that name
# begins at 1, too.
begins_anew() { # FLAGS...
  local MEETING=("$@") begin
  elastic_job 2:2 2
  begin=$(now)
  kill_worker 2
  steps_again host1 4 "$begin" 15
  kill_agent 1
  kill_agent 2
  for host in host1 host2; do ends "$host" 20 137; done
  elastic_job 2:2 2
  ends_well host1 host2
  says 'restart 0 '
  says_not 'restart [1-9] ' SIGKILL
}
test_keys_of_an_earlier_job_in_etcd() { begins_anew "${BY_ETCD[@]}"; }
test_keys_of_an_earlier_job_in_a_folder() { begins_anew "${BY_FOLDER[@]}"; }

# Another job of the same name is refused and does not touch the first.
refuses_another() { # FLAGS...
  local MEETING=("$@")
  elastic_job 1:2 2
  elastic_agent 3 --nnodes 1:3
  ends host3 30 2
  says 'nnodes'
  local SECRET=another
  elastic_agent 3 --nnodes 1:2
  ends host3 30 2
  says 'LOCKSTEP_SECRET'
  ends_well host1 host2
  says_not 'restart [1-9] '
}
test_two_jobs_of_one_name_in_etcd() { refuses_another "${BY_ETCD[@]}"; }
test_two_jobs_of_one_name_in_a_folder() { refuses_another "${BY_FOLDER[@]}"; }
