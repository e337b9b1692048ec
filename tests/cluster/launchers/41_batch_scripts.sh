# The batch scripts of examples/cluster, with fewer ranks.
# shellcheck shell=bash
batch_script() { # NAME FILE OPTION...: as a user submits it, until it has ended
  local name=$1 file=$2 code=0
  shift 2
  env PATH="$BIN:$PATH" TRAIN="${TRAIN[*]}" RANKS=2 sbatch --wait --output "$SHARED/$name.out" "$@" \
    "$ROOT/examples/cluster/$file" || code=$?
  cat "$SHARED/$name.out"
  return $code
}

test_the_batch_script_of_the_examples() {
  trainer example_batch
  within 60 0 batch_script example_batch train.sbatch --ntasks-per-node=2
  same_weights example_batch 4
}

test_the_batch_script_with_one_agent_a_node() {
  trainer example_agents
  within 60 0 batch_script example_agents elastic.sbatch
  same_weights example_agents 4
}

# As after the loss of a node. Slurm lets such a job wait for two minutes, unless it is changed.
test_agents_of_a_requeued_batch_script_take_up_their_results() {
  local id log=$SHARED/runs/example_requeued/log_0.txt
  STEPS=20 trainer example_requeued
  TRAIN+=(train.ckpt_save_steps=1)
  begin batch batch_script example_requeued elastic.sbatch
  until_true 60 grep -q 'step: \[3/' "$log"
  id=$(squeue -h -n lockstep-elastic -o %i)
  scontrol requeue "$id"
  until_true 60 scontrol update "JobId=$id" StartTime=now
  ends batch 120 0
  grep -Eq 'Resume train from epoch: 1, step: ([3-9]|1[0-9])' "$log" || fail "it began anew: $(cat "$log")"
}
