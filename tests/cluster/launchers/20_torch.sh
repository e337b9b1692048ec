# PyTorch's launchers start the trainer.
# shellcheck shell=bash
# tests/launch/torchrun.py is torchrun with repairs, because Debian's cannot start.

test_torchrun_on_one_host() {
  launcher_leaves /tmp/torchelastic_
  trainer torchrun
  within 60 0 on host1 /usr/bin/python3 "$ROOT/tests/launch/torchrun.py" --nproc_per_node 4 --no_python "${TRAIN[@]}"
  same_weights torchrun 4
}

test_torchrun_over_two_hosts() {
  launcher_leaves /tmp/torchelastic_
  local host
  trainer torchrun2
  for host in host1 host2; do
    begin "$host" on "$host" env LOCKSTEP_SECRET=between-us /usr/bin/python3 "$ROOT/tests/launch/torchrun.py" --nnodes 2 \
      --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint host1:29400 --rdzv_id job --no_python "${TRAIN[@]}"
  done
  for host in host1 host2; do ends "$host" 60 0; done
  same_weights torchrun2 4
}

# The module is broken like torchrun; it calls the same function after a warning.
test_torch_distributed_launch_on_one_host() {
  launcher_leaves /tmp/torchelastic_
  trainer launch
  within 60 0 on host1 /usr/bin/python3 "$ROOT/tests/cluster/harness/torch_launch.py" --nproc_per_node 4 --no_python --use_env "${TRAIN[@]}"
  same_weights launch 4
}

test_ps_lists_ranks_of_torchrun_by_its_id() {
  launcher_leaves /tmp/torchelastic_
  rm -f "$SHARED/stop"
  begin ranks on host1 /usr/bin/python3 "$ROOT/tests/launch/torchrun.py" --nproc_per_node 2 --rdzv_backend c10d \
    --rdzv_endpoint host1:29400 --rdzv_id night --no_python "$BIN/cluster_worker" "$SHARED/stop"
  shows ranks 60 'rank 0/2 .*first step'
  within 20 0 on host1 "$BIN/lockstep" ps
  says '^night .* torchrun .* 0 of 1 .* 0-1 of 2 .*cluster_worker'
  within 20 0 on host1 "$BIN/lockstep" inspect night
  says ' 0 .* all_reduce ' ' 1 .* all_reduce '
  within 20 2 on host1 "$BIN/lockstep" stop night
  says 'torchrun started job night, not lockstep run; end it with: Ctrl-C there, or kill [0-9]+$'
  touch "$SHARED/stop"
  ends ranks 60 0
}
