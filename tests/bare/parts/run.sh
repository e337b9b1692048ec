# make run as root, from nothing; with CIFAR-10 itself if it can be downloaded.
part_run() {
  make_machine
  grep -v ' www.cs.toronto.edu$' "$machine/etc/hosts" >"$machine/etc/hosts.new" && mv "$machine/etc/hosts.new" "$machine/etc/hosts"
  first_run root
}

# first_run WHO: three steps of make run, which must end with its closing lines and a checkpoint.
first_run() {
  local log=$machine/tmp/run.log
  in_machine "$1" 'STEPS=3 make run' 2>&1 | tee "$log" | sed -u 's/^/    /' || fail bare "make run as $1 failed"
  for line in 'setup: packages' 'build: release .* of ' 'build: release .* is up to date' 'step: \[3/[0-9]*\]' '=> Best acc' 'Checkpoint: '; do
    grep -q "$line" "$log" || fail bare "make run as $1 did not say '$line'"
  done
  # Tests, benchmarks and programs that this run does not start must not be built yet.
  local home=$machine/root more
  [ "$1" = root ] || home=$machine/home/$1
  more=$(awk 'NR > 1 { print $4 }' "$home/lockstep/build/release/.ninja_log" | grep -E '(^|/)(tests|bench)/|_test|bench_|synth|predict|convert' || true)
  [ -z "$more" ] || fail bare "make run built what it does not need: $(head -n 3 <<<"$more" | paste -sd' ')"
  # Again: only the training remains to do.
  in_machine "$1" 'STEPS=1 make run >/tmp/again.log 2>&1 && grep -q "all .* installed" /tmp/again.log && ! grep -q " of .* after " /tmp/again.log'
}
