# PyTorch's launchers start our trainer.
# shellcheck shell=bash
# tests/launch/torchrun.py is torchrun, mended where Debian's cannot start.

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

# The module is broken as torchrun is; it calls the same function after a warning.
test_torch_distributed_launch_on_one_host() {
  launcher_leaves /tmp/torchelastic_
  trainer launch
  within 60 0 on host1 /usr/bin/python3 "$ROOT/tests/cluster/harness/torch_launch.py" --nproc_per_node 4 --no_python --use_env "${TRAIN[@]}"
  same_weights launch 4
}
