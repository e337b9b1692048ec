# The core alone: it is configured, built and installed with its own packages only. A program trains
# with the installed core, as one process and as two ranks that a shell starts.
part_core() {
  local packages
  make_machine
  in_machine root 'scripts/setup.sh core && cmake --preset core && nice cmake --build build/core && cmake --install build/core --prefix /opt/lockstep' 2>&1 |
    sed -u 's/^/    /' || fail bare "the core cannot be built alone"
  packages=$(chroot "$machine" dpkg-query -W -f '${Package}\n' | grep -E '^(libopencv.*-dev|libyaml-cpp.*|libcurl4.*-dev|libarchive-dev|libgtest-dev)$' || true)
  [ -z "$packages" ] || fail bare "the core brought packages of other parts: $(echo $packages)"
  cp -r tests/system/outside_components "$machine/home/ada/project"
  cp examples/five_lines.cpp "$machine/home/ada/project/"
  rm -rf "$machine/root/lockstep/build" "$machine/root/lockstep/lockstep"
  chroot "$machine" chown -R ada: /home/ada
  in_machine ada 'cd ~/project && cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=/opt/lockstep -DCOMPONENT=core -DLOCKSTEP_EXAMPLES=$PWD &&
    cmake --build build && ctest --test-dir build --no-tests=error --output-on-failure && cd build &&
    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29471 && { RANK=1 LOCAL_RANK=1 ./five_lines & } && RANK=0 LOCAL_RANK=0 ./five_lines && wait' 2>&1 |
    tee "$machine/tmp/project.log" | sed -u 's/^/    /' || fail bare "a project that uses the core alone cannot be built or run"
  [ "$(grep -c 'right: 10[0-9][0-9] of 1024' "$machine/tmp/project.log")" -ge 2 ] || fail bare "two ranks of the core alone did not learn"
}
