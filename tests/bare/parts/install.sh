# make install as root; then a user's own project, with nothing but the installed files.
part_install() {
  make_machine
  in_machine root 'make install PREFIX=/opt/lockstep' 2>&1 | sed -u 's/^/    /' || fail bare "make install failed"
  rm -rf "$machine/root/lockstep/build" "$machine/root/lockstep/lockstep"
  in_machine ada 'cp -r examples/outside_project ~/project && cd ~/project && cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=/opt/lockstep &&
    cmake --build build && /opt/lockstep/bin/lockstep run --nproc_per_node 2 -- build/train line.safetensors' 2>&1 | tee "$machine/tmp/project.log" |
    sed -u 's/^/    /' || fail bare "a project that uses what was installed cannot be built or run"
  [ "$(grep -c 'ranks 2, weight' "$machine/tmp/project.log")" = 2 ] || fail bare "the project's two ranks did not say their weights"
}
