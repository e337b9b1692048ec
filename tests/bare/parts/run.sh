# make run as root, from nothing.
part_run() {
  make_machine
  first_run root
}

# first_run WHO: three steps of make run, which ends with its closing lines and leaves a checkpoint.
first_run() {
  local log=$machine/tmp/run.log
  in_machine "$1" 'STEPS=3 make run' 2>&1 | tee "$log" | sed -u 's/^/    /' || fail bare "make run as $1 failed"
  for line in 'setup: packages' 'build: release .* of ' 'build: release .* is up to date' 'step: \[3/312\]' '=> Best acc' 'Checkpoint: '; do
    grep -q "$line" "$log" || fail bare "make run as $1 did not say '$line'"
  done
  if grep -E '_test|bench_' "$log"; then fail bare "make run spoke of tests or benchmarks"; fi
  # Again: nothing is left to do but to train.
  in_machine "$1" 'STEPS=1 make run >/tmp/again.log 2>&1 && grep -q "all .* installed" /tmp/again.log && ! grep -q " of .* after " /tmp/again.log'
}
