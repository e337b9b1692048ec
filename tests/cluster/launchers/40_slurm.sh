# Slurm: srun with its ways to deal out ranks, steps, sbatch, PMI.
# shellcheck shell=bash
slurm_up 1 2 3
export LOCKSTEP_SECRET=between-us # srun passes the environment on

test_srun_on_two_nodes() {
  trainer srun
  within 60 0 srun -N2 --ntasks-per-node=2 "${TRAIN[@]}"
  same_weights srun 4
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

# The job has three nodes, the step the last two of them.
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

# Rank 0 is on neither the first host of the job's list nor of the step's.
test_srun_arbitrary() {
  trainer srun_arbitrary
  printf '%s\n' host3 host1 host3 host2 >"$SHARED/order"
  within 60 0 env SLURM_HOSTFILE="$SHARED/order" srun -n4 -m arbitrary --mpi=pmi2 "${TRAIN[@]}"
  same_weights srun_arbitrary 4
}
