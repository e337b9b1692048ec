# make test from nothing, with the sanitizers and without the part that makes hosts of its own.
part_test() {
  make_machine
  in_machine root 'make test PARTS="build release asan tsan"' 2>&1 | tee "$machine/tmp/test.log" | sed -u 's/^/    /' || fail bare "make test failed"
  grep -q '^test: all passed' "$machine/tmp/test.log" || fail bare "make test did not say that all passed"
}
