# make run as a user who has sudo, from nothing.
part_user() {
  . tests/bare/parts/run.sh
  make_machine
  first_run ada
}
