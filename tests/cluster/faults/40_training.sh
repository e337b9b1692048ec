# Training that is interrupted ends with the bits of training that is not.
# shellcheck shell=bash
training_data

test_training_goes_on_from_its_newest_checkpoint_after_a_kill() {
  local STEPS=12 begin
  trainer killed
  begin job on host1 "$BIN/lockstep" run --nproc_per_node 4 --max_restarts 1 -- "${TRAIN[@]}" train.ckpt_save_steps=2
  shows job 60 'step: \[5/'
  kill -KILL "$(pids_on 1 '^[^ ]*lockstep-train ' | tail -n 1)"
  ends job 60 0
  says 'SIGKILL' 'Resume train from epoch: 1, step: [0-9]+'
  same_weights killed 4
}

test_training_on_two_hosts_goes_on_after_a_kill() {
  local STEPS=12 host
  trainer killed2
  for host in host1 host2; do
    begin "$host" on "$host" env LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nproc_per_node 2 --nnodes 2:2 --rdzv_backend c10d \
      --rdzv_endpoint "$ENDPOINT" --rdzv_id train --max_restarts 1 -- "${TRAIN[@]}" train.ckpt_save_steps=2
  done
  until_true 60 grep -q 'step: \[5/' "$SHARED/runs/killed2/log_0.txt" || fail "no step 5"
  kill -KILL "$(pids_on 2 '^[^ ]*lockstep-train ' | tail -n 1)"
  for host in host1 host2; do ends "$host" 60 0; done
  grep -q 'Resume train from epoch: 1, step: ' "$SHARED/runs/killed2/log_0.txt" || fail "began anew"
  same_weights killed2 4
}
