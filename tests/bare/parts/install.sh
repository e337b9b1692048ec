# make install as root; then a user's own project, with nothing but the installed files.
part_install() {
  make_machine
  in_machine root 'make install PREFIX=/opt/lockstep' 2>&1 | sed -u 's/^/    /' || fail bare "make install failed"
  # Again: what an earlier installation had and this one has not is removed, all else stays.
  touch "$machine/opt/lockstep/include/lockstep/stale.h" "$machine/opt/lockstep/include/lockstep/own.h"
  echo include/lockstep/stale.h >>"$machine/opt/lockstep/share/lockstep/installed.txt"
  in_machine root 'sort -o /opt/lockstep/share/lockstep/installed.txt{,} && umask 077 && make install PREFIX=/opt/lockstep &&
    rm build/release/configure.log && make install DESTDIR=/tmp/stage PREFIX=/usr/local' >"$machine/tmp/again.log" 2>&1 || { tail "$machine/tmp/again.log" >&2; fail bare "make install fails the second time"; }
  grep -q '^install: left out   part MPI: ' "$machine/tmp/again.log" || fail bare "make install does not name the parts that it leaves out"
  [ ! -e "$machine/opt/lockstep/include/lockstep/stale.h" ] && [ -e "$machine/opt/lockstep/include/lockstep/own.h" ] &&
    [ -e "$machine/opt/lockstep/include/lockstep/world.h" ] || fail bare "a second make install does not remove just what the first one had more"
  [ -x "$machine/tmp/stage/usr/local/bin/lockstep" ] && [ ! -e "$machine/usr/local/bin/lockstep" ] || fail bare "DESTDIR is not where the files go"
  [ -z "$(find "$machine/tmp/stage" "$machine/opt/lockstep" ! -perm -o=r -print -quit)" ] || fail bare "with umask 077 other users cannot read what is installed"
  rm -rf "$machine/root/lockstep/build" "$machine/root/lockstep/lockstep"
  in_machine ada 'cp -r examples/outside_project ~/project && cd ~/project && cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=/opt/lockstep &&
    cmake --build build && /opt/lockstep/bin/lockstep run --nproc_per_node 2 -- build/train line.safetensors' 2>&1 | tee "$machine/tmp/project.log" |
    sed -u 's/^/    /' || fail bare "a project that uses what was installed cannot be built or run"
  [ "$(grep -c 'ranks 2, weight' "$machine/tmp/project.log")" = 2 ] || fail bare "the project's two ranks did not say their weights"
}
