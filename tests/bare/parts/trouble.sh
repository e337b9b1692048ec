# Obstacles to make run on a user's machine: one line must name each one and its place, or it must
# not matter.
part_trouble() {
  make_machine
  refused root 'unshare --net make run' 'setup: error: no package registry can be reached'
  refused root 'mount -t tmpfs -o size=8m tmpfs /var/cache/apt/archives && mkdir /var/cache/apt/archives/partial && make run' \
    'setup: error: no space left .* for packages'
  refused root 'TMPDIR=/nowhere make run' 'setup: error: /nowhere cannot be written'
  # An unreachable registry among several, and a small disk, are not blamed for other failures.
  refused root 'echo "deb http://127.0.0.1:9/ none main" >/etc/apt/sources.list.d/none.list && mount -t tmpfs -o size=50m,mode=1777 tmpfs /tmp &&
    echo "Dir::Bin::dpkg \"/bin/false\";" >/tmp/apt.conf && APT_CONFIG=/tmp/apt.conf make run' 'setup: error: apt-get failed: Sub-process /bin/false'
  rm "$machine/etc/apt/sources.list.d/none.list"
  mv "$machine/usr/bin/sudo" "$machine/usr/bin/no-sudo"
  refused ada 'make run' 'setup: error: packages are missing, and there is neither root nor sudo here; .*apt-get install .*libtorch-dev'
  mv "$machine/usr/bin/no-sudo" "$machine/usr/bin/sudo"
  mv "$machine/etc/sudoers.d/ada" "$machine/etc/ada"
  refused ada 'make run' 'setup: error: packages are missing, and sudo does not let ada install them; .*apt-get install .*libtorch-dev'
  mv "$machine/etc/ada" "$machine/etc/sudoers.d/ada"

  in_machine root 'scripts/setup.sh run && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-venv' >/dev/null 2>&1
  # pip itself says that there is no such version.
  refused root 'unshare --net env TORCH=2.13.0 scripts/setup.sh run' 'setup: error: no package index can be reached for torch==2.13.0 ('
  refused root 'unshare --net env TORCH=2.13.0 HTTPS_PROXY=http://127.0.0.1:9 scripts/setup.sh run' 'setup: error: no package index can be reached for torch==2.13.0 ('
  refused root 'unshare --net env TORCH=2.13.0 SETUP_LIMIT_S=1 scripts/setup.sh run' 'setup: error: torch 2.13.0 was not installed within 1 s'
  refused root 'SETUP_LIMIT_S=soon scripts/setup.sh run' "setup: error: SETUP_LIMIT_S is 'soon'"
  rm -rf "$machine/root/lockstep/build"
  refused root 'mkdir build && mount -t tmpfs -o size=1m tmpfs build && make run' 'build: error: no space left on .*lockstep/build'
  refused root 'set -o pipefail; mount -t tmpfs -o size=64m,mode=1777 tmpfs /tmp && git clone -q . /srv/wrong && cd /srv/wrong && echo "int wrong = ;" >>lockstep/base/log.cpp &&
    scripts/build.sh release lockstep_base 2>&1 | grep -v "error: expected"' 'build: error: release failed'
  refused root 'mount -t tmpfs -o noexec tmpfs /tmp && scripts/test.sh release' 'test: error: /tmp is mounted noexec'
  in_machine root 'git clone -q . /srv/lockstep && cd /srv/lockstep && scripts/build.sh release lockstep_base' >/dev/null
  refused ada 'cd /srv/lockstep && make run' 'build: error: /srv/lockstep/build/release.* belongs to root, and ada cannot write it'
  refused root 'cp -r /srv/lockstep /srv/moved && cd /srv/moved && make run' 'build: error: build/release was configured in /srv/lockstep'
  refused root 'mount -t tmpfs -o noexec tmpfs /mnt && git clone -q . /mnt/lockstep && cd /mnt/lockstep && make run' \
    'error: /mnt/lockstep/scripts/setup.sh cannot be run: is this folder mounted noexec'
  refused root 'cp -r /srv/lockstep /srv/archive && cd /srv/archive && chmod -x scripts/*.sh && make run' \
    'error: /srv/archive/scripts/setup.sh has lost its right to be run'
  refused root 'cd / && make -f /srv/lockstep/Makefile run' 'error: / is not the folder of Lockstep'
  refused ada 'make install' 'install: error: ada cannot make /usr/local, because of /usr/local: .*for the last step alone: scripts/'
  # The suggested commands work from nothing, and again; root's files do not obstruct the next
  # build.
  goes_well ada 'remedy=$(make install 2>&1 | sed -n "s/.*for the last step alone: //p" | head -n 1)
    for time in 1 2; do eval "$remedy" && /usr/local/bin/lockstep --version || exit 1; done; make install PREFIX=$HOME/own'
  mkdir "$machine/home/ada/lockstep/runs"
  refused ada 'scripts/run.sh' 'run: error: /home/ada/lockstep/runs belongs to root, and ada cannot write it'
  rmdir "$machine/home/ada/lockstep/runs"
  goes_well root 'mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp && STEPS=1 make run'
  goes_well root 'mkdir -p "/srv/two words" && git clone -q . "/srv/two words/lock step" && cd "/srv/two words/lock step" && STEPS=1 make run'
  # Another prefix comes first, as with conda; it has other versions of the libraries.
  goes_well root 'mkdir -p /opt/conda/bin /opt/conda/include/fmt /opt/conda/lib/cmake/fmt && echo "#error of conda" >/opt/conda/include/fmt/format.h &&
    echo "message(FATAL_ERROR \"of conda\")" >/opt/conda/lib/cmake/fmt/fmt-config.cmake && git clone -q . /srv/conda && cd /srv/conda &&
    export PATH=/opt/conda/bin:$PATH CPATH=/opt/conda/include CMAKE_PREFIX_PATH=/opt/conda CXXFLAGS=-Dint=long && scripts/build.sh release lockstep_base &&
    env -u CPATH -u CMAKE_PREFIX_PATH -u CXXFLAGS cmake --preset release -B /srv/conda/by-hand >/dev/null'
  # The user can write neither the compiler's cache nor the home folder.
  goes_well ada 'HOME=/nonexistent CCACHE_DIR=/nonexistent/ccache scripts/build.sh release lockstep_base'
}

# refused WHO COMMAND PATTERN: COMMAND fails, and its only line with an error matches PATTERN.
refused() {
  local said
  said=$(in_machine "$1" "$2" 2>&1) && fail bare "this went well, and should not: $2"
  if [ "$(grep -c 'error: ' <<<"$said")" != 1 ] || ! grep -q "$3" <<<"$said"; then
    printf '%s\n' "$said" | tail -n 30 >&2
    fail bare "'$2' as $1 did not say in one line '$3'"
  fi
  echo "    $(grep 'error: ' <<<"$said" | cut -c1-150)"
}

goes_well() {
  local said
  said=$(in_machine "$1" "$2" 2>&1) || { printf '%s\n' "$said" | tail -n 30 >&2; fail bare "'$2' as $1 failed"; }
  echo "    ok: $2"
}
