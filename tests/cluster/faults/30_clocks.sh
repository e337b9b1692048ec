# Clocks. The kernel has one wall clock for all hosts; libfaketime gives one host's programs
# another.
# shellcheck shell=bash

test_a_clock_that_jumps_an_hour_ahead_and_two_back() {
  rm -f "$STOP"
  local shift=$SHARED/clock library before
  library=$(dpkg -L libfaketime | grep '/libfaketimeMT.so.1$')
  echo +0 >"$shift"
  SECRET=between-us node 1
  begin host2 on host2 env LD_PRELOAD="$library" FAKETIME_TIMESTAMP_FILE="$shift" FAKETIME_NO_CACHE=1 DONT_FAKE_MONOTONIC=1 \
    LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nproc_per_node 2 --nnodes 2 --node_rank 1 --master_addr host1 \
    --master_port 29400 -- "$BIN/cluster_worker" "$STOP"
  shows host2 30 'rank 2/4 .*first step'
  before=$(steps_so_far)
  for change in +3600 -3600; do
    echo "$change" >"$shift"
    sleep 4 # nothing must happen, for longer than it takes to give a host up
  done
  [ "$(steps_so_far)" = "$before" ] || fail "started again"
  ends_well host1 host2
  # The clock really jumped.
  local here there
  here=$(awk '/ steps at/ { print $NF; exit }' "$OUTPUT.host1")
  there=$(awk '/ steps at/ { print $NF; exit }' "$OUTPUT.host2")
  awk -v here="$here" -v there="$there" 'BEGIN { exit !(there < here - 3500) }' || fail "the clock of host2 did not jump: $here and $there"
}
steps_so_far() { grep -c 'first step' "$OUTPUT.host2"; }
