# Open MPI's mpirun and MPICH's mpiexec.hydra start the trainer, which does not use MPI.
# shellcheck shell=bash
# Both start other hosts by ssh. All ranks share two cores.
open_mpi() { # HOST ARGUMENTS...
  on "$1" env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe --bind-to none "${@:2}"
}

test_mpirun_on_one_host() {
  trainer mpirun
  within 60 0 open_mpi host1 -n 4 "${TRAIN[@]}"
  same_weights mpirun 4
}

test_mpirun_over_two_hosts_by_list() {
  trainer mpirun_list
  within 60 0 open_mpi host1 -n 4 -H host1:2,host2:2 -x LOCKSTEP_SECRET=between-us "${TRAIN[@]}"
  same_weights mpirun_list 4
}

# Rank 0 makes a secret, and the others get it through PMIx.
test_mpirun_over_two_hosts_without_a_secret() {
  unset LOCKSTEP_SECRET
  trainer mpirun_bare
  within 60 0 open_mpi host1 -n 4 -H host1:2,host2:2 "${TRAIN[@]}"
  same_weights mpirun_bare 4
}

# Open MPI's own files have a folder of their own.
test_mpirun_shows_how_far_training_is() {
  mkdir "$SHARED/ompi"
  TMPDIR=$SHARED/ompi shows_progress mpirun open_mpi host1 -n 2
  rm -r "$SHARED/ompi"
}

# The host of the command takes no part: rank 0 is elsewhere.
test_mpirun_over_two_other_hosts_by_file() {
  trainer mpirun_file
  printf '%s slots=2\n' host2 host3 >"$SHARED/hostfile"
  within 60 0 open_mpi host1 -n 4 --hostfile "$SHARED/hostfile" -x LOCKSTEP_SECRET=between-us "${TRAIN[@]}"
  same_weights mpirun_file 4
}

test_mpirun_with_the_ranks_dealt_out_by_node() {
  trainer mpirun_node
  within 60 0 open_mpi host1 -n 4 -H host1:2,host2:2 --map-by node -x LOCKSTEP_SECRET=between-us "${TRAIN[@]}"
  same_weights mpirun_node 4
}

# A sum of two ranks has only one order, so any engine gives the weights of `native`.
test_training_by_other_engines_over_two_hosts() {
  local engine
  for engine in mpi c10d:gloo; do
    trainer "engine_$engine"
    within 60 0 open_mpi host1 -n 2 -H host1:1,host2:1 -x LOCKSTEP_SECRET=between-us "${TRAIN[@]}" "parallel.backend=$engine"
    same_weights "engine_$engine" 2
  done
}

# Each engine uses its own connections between the hosts.
test_every_back_end_keeps_its_promises_between_hosts() {
  local engine
  for engine in native mpi c10d:gloo; do
    within 120 0 open_mpi host1 -n 3 -H host1:2,host2:1 -x LOCKSTEP_SECRET=between-us "$BIN/cluster_suite" "$engine"
    says "rank 2 of 3 on 2 hosts: all of $engine"
  done
}

test_hydra_on_one_host() {
  trainer hydra
  within 60 0 on host1 mpiexec.hydra -n 4 "${TRAIN[@]}"
  same_weights hydra 4
}

# No variable has the rank then: the process queries it at a port.
test_hydra_over_two_hosts_by_port() {
  trainer hydra_port
  within 60 0 on host1 mpiexec.hydra -pmi-port -n 4 -ppn 2 -hosts host1,host2 -genv LOCKSTEP_SECRET between-us "${TRAIN[@]}"
  same_weights hydra_port 4
}

# PMI carries the secret.
test_hydra_over_two_hosts() {
  unset LOCKSTEP_SECRET
  trainer hydra2
  within 60 0 on host1 mpiexec.hydra -n 4 -ppn 2 -hosts host1,host2 "${TRAIN[@]}"
  same_weights hydra2 4
}

test_ps_lists_ranks_of_mpirun_on_each_host() {
  rm -f "$SHARED/stop"
  begin ranks open_mpi host1 -n 2 -H host1:1,host2:1 -x LOCKSTEP_SECRET=between-us "$BIN/cluster_worker" "$SHARED/stop"
  shows ranks 60 'rank 0/2 .*first step'
  within 20 0 on host1 "$BIN/lockstep" ps
  says '^mpirun-[^ ]+ .* mpirun .* 0 of 2 .*cluster_worker'
  within 20 0 on host2 "$BIN/lockstep" ps
  says '^mpirun-[^ ]+ .* mpirun .* 1 of 2 .*cluster_worker'
  touch "$SHARED/stop"
  ends ranks 60 0
  within 20 0 on host1 "$BIN/lockstep" ps
  says_not mpirun
}
