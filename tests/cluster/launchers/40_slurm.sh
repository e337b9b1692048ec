# Slurm: srun with its distributions of ranks, steps, sbatch, PMI.
# shellcheck shell=bash
slurm_up 1 2 3
export LOCKSTEP_SECRET=between-us # srun passes the environment on

test_srun_on_two_nodes() {
  trainer srun
  within 60 0 srun -N2 --ntasks-per-node=2 "${TRAIN[@]}"
  same_weights srun 4
}

test_srun_shows_how_far_training_is() {
  shows_progress srun srun -N2 --ntasks-per-node=1
}

# As in the guides: every task of a node, and of all nodes, must decide alike.
test_srun_of_a_script_that_sets_torchs_names() {
  trainer srun_names
  # shellcheck disable=SC2016
  within 60 0 srun -N2 --ntasks-per-node=2 sh -c \
    'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS MASTER_ADDR=host1 MASTER_PORT=25900; exec "$0" "$@"' \
    "${TRAIN[@]}"
  same_weights srun_names 4
}

test_srun_cyclic() {
  trainer srun_cyclic
  within 60 0 srun -N2 -n4 -m cyclic "${TRAIN[@]}"
  same_weights srun_cyclic 4
}

# Here and with PMIx rank 0 makes a secret, and the others get it from Slurm.
test_srun_with_pmi2() {
  unset LOCKSTEP_SECRET
  trainer srun_pmi2
  within 60 0 srun -N2 --ntasks-per-node=2 --mpi=pmi2 "${TRAIN[@]}"
  same_weights srun_pmi2 4
}

test_srun_with_pmix() {
  unset LOCKSTEP_SECRET
  trainer srun_pmix
  within 60 0 srun -N2 --ntasks-per-node=2 --mpi=pmix "${TRAIN[@]}"
  same_weights srun_pmix 4
}

# Nothing is set: each host's munged certifies the ranks' user.
test_plain_srun_where_munge_is() {
  local i daemons=()
  unset LOCKSTEP_SECRET
  for i in 1 2; do
    on "host$i" mkdir -p /run/munge
    enter "$i"
    service "$SHARED/log/munged-host$i" "${ENTER[@]}" munged --foreground --force --key-file="$SHARED/slurm/munge/key" \
      --seed-file=/run/munge/seed
    daemons+=("$SERVICE")
    until_true 30 on "host$i" munge --no-input
  done
  trainer srun_munge
  within 60 0 srun -N2 --ntasks-per-node=2 "${TRAIN[@]}"
  same_weights srun_munge 4
  trainer srun_munge_agents
  within 60 0 srun -N2 --ntasks-per-node=1 "$BIN/lockstep" run --nproc_per_node 2 -- "${TRAIN[@]}"
  same_weights srun_munge_agents 4
  kill "${daemons[@]}"
}
test_plain_srun_without_munge_says_what_to_set() {
  unset LOCKSTEP_SECRET
  trainer srun_plain
  within 60 2 srun -N2 --ntasks-per-node=2 "${TRAIN[@]}"
  says 'set LOCKSTEP_SECRET to the same text'
}

batch() { # NAME OPTIONS... -- COMMAND...: a script that runs COMMAND; its output becomes $OUTPUT
  local name=$1 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  { echo '#!/bin/bash'; printf '%q ' "$@"; printf '\necho $? >%s\n' "$SHARED/$name.code"; } >"$SHARED/$name.sh"
  sbatch --output "$SHARED/$name.out" "${options[@]}" "$SHARED/$name.sh"
  until_true 60 test -s "$SHARED/$name.code"
  cat "$SHARED/$name.out"
  return "$(cat "$SHARED/$name.code")"
}

test_sbatch_with_srun() {
  trainer sbatch
  within 60 0 batch sbatch -N2 --ntasks-per-node=2 -- srun "${TRAIN[@]}"
  same_weights sbatch 4
}

# The job has three nodes; the step uses the last two of them.
test_a_step_on_some_of_the_nodes_of_sbatch() {
  trainer step
  within 60 0 batch step -N3 --ntasks-per-node=2 -- srun -N2 -r1 -n4 "${TRAIN[@]}"
  same_weights step 4
}

# Every rank inherits the script's SLURM_PROCID=0.
test_mpirun_in_sbatch() {
  trainer mpirun_sbatch
  within 60 0 batch mpirun -N2 --ntasks-per-node=2 -- env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    mpirun.openmpi --bind-to none -x LOCKSTEP_SECRET "${TRAIN[@]}"
  same_weights mpirun_sbatch 4
}

test_lockstep_run_in_srun() {
  trainer srun_run
  within 60 0 srun -N2 --ntasks-per-node=1 sh -c \
    'exec "$0" run --nnodes 2 --node_rank $SLURM_NODEID --nproc_per_node 2 --master_addr host1 --master_port 29500 -- "$@"' \
    "$BIN/lockstep" "${TRAIN[@]}"
  same_weights srun_run 4
}

# No option gives the nodes: they come from the step.
test_lockstep_run_in_srun_takes_the_steps_nodes() {
  trainer srun_nodes
  within 60 0 srun -N2 --ntasks-per-node=1 "$BIN/lockstep" run --nproc_per_node 2 -- "${TRAIN[@]}"
  same_weights srun_nodes 4
  within 60 2 srun -N2 --ntasks-per-node=2 "$BIN/lockstep" run --nproc_per_node 1 -- "${TRAIN[@]}"
  says 'start one a node'
}

# A shell of four tasks: a command typed there is one process, and srun there starts a step.
test_the_shell_of_srun_pty() {
  printf '%s\n' "$BIN/lockstep env" "srun --overlap -n2 $BIN/lockstep env" >"$SHARED/typed"
  within 60 0 script -qec "srun -n4 --pty bash $SHARED/typed" /dev/null
  says 'rank +0 of 1'
  says 'rank +[01] of 2'
}

# Rank 0 is neither on the first host of the job's list nor on that of the step's.
test_srun_arbitrary() {
  trainer srun_arbitrary
  printf '%s\n' host3 host1 host3 host2 >"$SHARED/order"
  within 60 0 env SLURM_HOSTFILE="$SHARED/order" srun -n4 -m arbitrary --mpi=pmi2 "${TRAIN[@]}"
  same_weights srun_arbitrary 4
}

test_ps_lists_a_step_and_stop_names_scancel() {
  local id
  rm -f "$SHARED/stop"
  begin ranks srun -N2 -n2 "$BIN/cluster_worker" "$SHARED/stop"
  shows ranks 60 'rank 0/2 .*first step'
  within 20 0 on host2 "$BIN/lockstep" ps
  says '^slurm-[0-9]+\.0 .* srun .* 1 of 2 .* 1 of 2 .*cluster_worker'
  id=$(grep -Eo '^slurm-[0-9]+\.0' "$OUTPUT")
  within 20 2 on host2 "$BIN/lockstep" stop "$id"
  says "srun started job $id, not lockstep run; end it with: scancel ${id#slurm-}\$"
  touch "$SHARED/stop"
  ends ranks 60 0
}
