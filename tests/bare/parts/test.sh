# make test from nothing, without the parts that need a second machine or run programs twice.
part_test() {
  make_machine
  in_machine root 'make test PARTS="build release"' 2>&1 | tee "$machine/tmp/test.log" | sed -u 's/^/    /' || fail bare "make test failed"
  grep -q '^test: all passed' "$machine/tmp/test.log" || fail bare "make test did not say that all passed"
}
