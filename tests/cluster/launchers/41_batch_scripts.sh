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
