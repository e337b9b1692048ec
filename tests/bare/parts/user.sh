# make run as a user with sudo, from nothing.
part_user() {
  . tests/bare/parts/run.sh
  make_machine
  first_run ada
}
