# The harness itself.
# shellcheck shell=bash
training_data
for i in 1 2 3; do host_boot "$i"; done

test_hosts_reach_each_other_and_are_apart() {
  within 20 0 on host1 ssh host2 hostname
  says '^host2$'
  on host1 touch /tmp/here /dev/shm/here
  within 5 2 on host2 ls /tmp/here /dev/shm/here
  on host1 rm /tmp/here /dev/shm/here
  host_cut 2
  within 5 124 on host1 timeout 1 bash -c 'true </dev/tcp/host2/22'
  host_heal 2
  within 5 0 on host1 bash -c 'true </dev/tcp/host2/22'
  pair_cut 1 2
  within 5 124 on host1 timeout 1 bash -c 'true </dev/tcp/host2/22'
  within 5 0 on host3 bash -c 'true </dev/tcp/host2/22'
  pair_heal 1 2
}
