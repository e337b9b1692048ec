# Kubernetes: agents with exactly the environment that the manifests of examples/cluster give their
# pods.
# shellcheck shell=bash
MANIFESTS=$ROOT/examples/cluster
# Pods find each other by these names, from a headless Service.
echo "$NETWORK.1 lockstep-train-0.lockstep-train lockstep-train-worker-0" >>"$SHARED/etc/hosts"

pod() { # FILE INDEX: starts pod INDEX on a host; TRAIN takes the place of the manifest's program
  local environment words word command=()
  mapfile -t environment < <("$BIN/manifest" environment "$MANIFESTS/$1" "$2")
  mapfile -t words < <("$BIN/manifest" command "$MANIFESTS/$1")
  for word in "${words[@]}"; do
    command+=("$word")
    [ "$word" != -- ] || break
  done
  [ "${#environment[@]}" -gt 4 ] && [ "${command[*]}" = "lockstep run --" ] || fail "the manifest has no agent"
  begin "pod$2" on "host$(($2 + 1))" env -i PATH="$BIN:$PATH" HOME=/root "${environment[@]}" "${command[@]}" "${TRAIN[@]}"
}

test_pods_of_an_indexed_job() {
  trainer kubernetes
  pod job.yaml 0
  pod job.yaml 1
  ends pod0 60 0
  ends pod1 60 0
  same_weights kubernetes 4
}

test_pods_of_a_pytorchjob() {
  trainer kubeflow
  pod pytorchjob.yaml 1
  pod pytorchjob.yaml 0
  ends pod0 60 0
  ends pod1 60 0
  same_weights kubeflow 4
}
