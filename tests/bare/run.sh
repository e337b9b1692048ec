#!/usr/bin/env bash
# The commands of the README on a bare machine: tests/bare/run.sh [PART...], by default all parts
#
#   run      make run with a few steps, as root
#   user     the same as a user with sudo
#   install  make install, and a project outside of this tree that uses the installed files
#   core     the core alone, with its own packages only, and a program that trains with it
#   image    the image of examples/cluster, and two ranks that train in it
#   trouble  obstacles to make run, and their messages: no network, no sudo, a full disk ...
#   docs     the commands in README and docs (blocks "console"); long ones are ended after a good start
#   test     make test without its cluster: an hour, more where the compiler's cache is cold
#
# The machine is a folder made by debootstrap, entered with its own mounts, processes and name; it
# contains a clone of HEAD. It also gets the host's apt configuration, proxies and compiler cache,
# and nothing else. The result of debootstrap stays in the user's cache folder; all else is removed
# at the end. KEEP=1 keeps the machine and prints its path. Needs root: sudo must work without a
# password.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
PATH=$PATH:/usr/sbin:/sbin # `su` leaves these out
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lockstep
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || fail bare "debootstrap and namespaces take root: run as root, or allow sudo without a password"
  # Root works in a folder that the user owns, so the user can remove root's files there.
  mkdir -p "$cache/packages"
  exec sudo -n --preserve-env=KEEP,XDG_CACHE_HOME,HOME,CCACHE_DIR,http_proxy,https_proxy,no_proxy,all_proxy "$0" "$@"
fi
command -v debootstrap >/dev/null || fail bare "there is no debootstrap: scripts/setup.sh bare installs it"
[ $# -gt 0 ] || set -- run user install core image trouble docs test
for part in "$@"; do
  [ -f "tests/bare/parts/$part.sh" ] || fail bare "no part '$part'; parts are run, user, install, core, image, trouble, docs, test"
done
# A machine ends with its caller, whatever ends that.
namespaces=(setpriv --pdeathsig KILL unshare --mount --uts --ipc --pid --fork --kill-child)
"${namespaces[@]}" true || fail bare "this system grants root no namespaces: ${namespaces[*]}"
git_here() { GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' git "$@"; }
head=$(git_here rev-parse --short HEAD 2>/dev/null) ||
  fail bare "$PWD is no git repository, and a clone of its HEAD is what is tried"
mkdir -p "$cache"
free=$(df --output=avail -B1G "$cache" | tail -n 1)
[ "$free" -ge 10 ] || fail bare "a machine, its packages and its builds take 10 GiB below $cache, where $((free)) are left: XDG_CACHE_HOME=FOLDER names another place"
changed=$(git_here status --porcelain | wc -l)
[ "$changed" = 0 ] || echo "bare: note: $changed files here are not as in the commit that is tried, $head"
start=$SECONDS

# Packages come from the registries of this host's apt; none is named here. Of each index: codename,
# address, FILE:entry.
indices=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI) $(SOURCESENTRY)' 'Created-By: Packages' 'Component: main' 2>/dev/null |
  awk '$1 ~ /^bookworm/' || true)
mirror=$(awk '$1 == "bookworm" { print $2; exit }' <<<"$indices")
[ -n "$mirror" ] || fail bare "this host's apt has no packages of Debian 12 (bookworm, main), of which the machine is made: apt-get indextargets lists none"
sources=$(awk '{ sub(/:[0-9]+$/, "", $3); print $3 }' <<<"$indices" | sort -u)

# The machine as made by debootstrap, once a month.
archive=$cache/bare-bookworm-$(cksum <<<"$mirror" | cut -d' ' -f1).tar
make_archive() {
  local root
  root=$(mktemp -d "$cache/made.XXXXXX")
  scratch+=("$root" "$archive.part" "$cache/debootstrap.log")
  if ! debootstrap --variant=minbase --include=git,make,ca-certificates,sudo bookworm "$root" "$mirror" >"$cache/debootstrap.log" 2>&1; then
    fail bare "debootstrap could not make a machine from what $(echo $sources) names: $(grep -E '^[EW]:' "$cache/debootstrap.log" | tail -n 1)"
  fi
  rm -f "$root"/var/cache/apt/archives/*.deb
  tar -C "$root" --one-file-system -cf "$archive.part" .
  mv "$archive.part" "$archive"
  rm -rf "$root"
  echo "bare: machine      made by debootstrap in $((SECONDS - start)) s, kept as $archive"
}
exec 8>"$cache/bare.lock"
flock 8
[ -n "$(find "$archive" -mtime -30 2>/dev/null)" ] || make_archive
# Removes machines of killed runs: their locks are free.
for left in "$cache"/machine.*; do
  if [ -d "$left" ] && flock -n "$left" true; then rm -rf --one-file-system "$left"; fi
done
flock -u 8

# make_machine: a new one in $machine, with clones of HEAD for root and for ada, who has sudo.
make_machine() {
  machine=$(mktemp -d "$cache/machine.XXXXXX")
  [ -n "${KEEP:-}" ] || scratch+=("$machine")
  exec 7<"$machine"
  flock 7
  tar -C "$machine" -xf "$archive"
  chmod 755 "$machine"
  rm -f "$machine/etc/apt/sources.list"
  cp -r /etc/apt/{apt.conf,auth.conf,preferences,trusted.gpg}{,.d} /etc/apt/keyrings "$machine/etc/apt/" 2>/dev/null || true
  cp -rn /usr/share/keyrings "$machine/usr/share/" # sources may name them
  # Overrides a container's configuration: packages are kept for the next machine.
  rm -f "$machine/etc/apt/apt.conf.d/docker-clean"
  echo 'APT::Keep-Downloaded-Packages "true";' >"$machine/etc/apt/apt.conf.d/99keep"
  # The machine is temporary: dpkg need not wait for the disk after each file.
  echo force-unsafe-io >"$machine/etc/dpkg/dpkg.cfg.d/bare"
  local file
  for file in $sources; do cp "$file" "$machine$file"; done
  cp /etc/resolv.conf "$machine/etc/resolv.conf"
  printf '127.0.0.1 localhost\n127.0.1.1 bare\n::1 localhost\n' >"$machine/etc/hosts"
  # CIFAR-10's host is unreachable except in the part that downloads it: elsewhere a generated set
  # is used.
  echo '255.255.255.255 www.cs.toronto.edu' >>"$machine/etc/hosts"
  echo 'ada ALL=(ALL) NOPASSWD: ALL' >"$machine/etc/sudoers.d/ada"
  chroot "$machine" useradd --create-home --shell /bin/bash ada
  printf '[safe]\n\tdirectory = *\n' >"$machine/root/.gitconfig"
  GIT_CONFIG_GLOBAL="$machine/root/.gitconfig" git clone -q --depth 1 "file://$PWD" "$machine/root/lockstep"
  cp -r "$machine/root/lockstep" "$machine/home/ada/lockstep"
  chroot "$machine" chown -R ada: /home/ada
}

# in_machine WHO COMMAND...: runs it there in a shell, in the clone, without this environment.
in_machine() {
  "${namespaces[@]}" bash tests/bare/enter.sh "$machine" "$cache" "$@" &
  local inside=$! code=0
  wait "$inside" || code=$?
  return $code
}
trap 'exit 130' INT TERM HUP

for part in "$@"; do
  begin=$SECONDS
  echo "bare: $part  begins, with $head"
  . "tests/bare/parts/$part.sh"
  "part_$part"
  exec 7<&-
  if [ -n "${KEEP:-}" ]; then echo "bare: $part  machine kept: $machine"; else rm -rf --one-file-system "$machine"; fi
  echo "bare: $part  ok in $((SECONDS - begin)) s"
done
echo "bare: all passed in $((SECONDS - start)) s"
