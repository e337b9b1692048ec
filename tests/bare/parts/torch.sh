# make run with PyPI's libtorch, from nothing.
part_torch() {
  . tests/bare/parts/run.sh
  make_machine
  first_run root 2.13.0
}
