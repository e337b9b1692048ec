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
