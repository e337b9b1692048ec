# The image of examples/cluster, as in the guide, and a job of two ranks in it. buildah makes it,
# podman's builder. Its base is the bare machine, as no registry of images need be in reach.
part_image() {
  local source container ccache_folder builder
  command -v buildah >/dev/null || fail bare "there is no buildah: scripts/setup.sh bare installs it"
  make_machine
  source=$machine/root/lockstep
  chroot "$machine" userdel -r ada 2>/dev/null # an image of Debian has no users
  # What an earlier build has left in the source tree must do no harm.
  mkdir -p "$source/build/release"
  echo 'CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere' >"$source/build/release/CMakeCache.txt"

  mkdir "$machine/images"
  tar -C "$machine" --one-file-system --exclude=./root/lockstep --exclude=./images -cf "$machine/images/base.tar" .
  container=$(image_tool from scratch)
  image_tool add -q "$container" "$machine/images/base.tar" / >/dev/null
  image_tool commit -q "$container" bare >/dev/null
  rm "$machine/images/base.tar"

  mkdir -p "$cache/packages/partial"
  builder=(--isolation chroot --build-arg BASE=localhost/bare --volume "$cache/packages:/var/cache/apt/archives")
  ccache_folder=${CCACHE_DIR:-$(ccache --get-config cache_dir 2>/dev/null || true)}
  if [ -d "$ccache_folder" ]; then
    builder+=(--volume "$ccache_folder:/var/ccache" --env CCACHE_DIR=/var/ccache
      --env "CCACHE_MAXSIZE=$(ccache --get-config max_size 2>/dev/null || echo 5G)")
    [ -O "$ccache_folder" ] || builder+=(--env CCACHE_READONLY=1)
  fi
  (cd "$source" && image_tool build "${builder[@]}" -f examples/cluster/Containerfile -t lockstep .) 2>&1 |
    sed -u 's/^/    /' || fail bare "the image cannot be built"

  container=$(image_tool from localhost/lockstep)
  image_tool run --isolation chroot "$container" -- bash -c 'id -un && lockstep data cifar10 --generate --records 200 &&
    lockstep run --nproc_per_node 2 -- lockstep train --config cls/resnet/resnet18_cifar10.yaml -o train.max_steps=2 system.log_interval=1' 2>&1 |
    tee "$machine/tmp/job.log" | sed -u 's/^/    /' || fail bare "two ranks do not train in the image"
  for line in '^trainer$' 'step: \[2/' 'Checkpoint: runs/'; do
    grep -q "$line" "$machine/tmp/job.log" || fail bare "the job in the image did not say '$line'"
  done
}

# buildah with the images of this part. Its mounts end with it, also if it fails.
image_tool() {
  unshare --mount buildah --root "$machine/images/root" --runroot "$machine/images/run" --storage-driver overlay "$@"
}
