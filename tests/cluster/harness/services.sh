# Services of clusters: ssh, Slurm, etcd.
# shellcheck shell=bash
#
#   slurm_up I...             a controller on the head, a node on each of these hosts; then srun and sbatch work
#   etcd_up, etcd_kill        http://head:2379 with its data kept over a kill
#   service COMMAND...        starts something that may stay when a test ends; its pid is in $SERVICE

service() { # LOG COMMAND...
  local log=$1
  shift
  setsid "$@" >>"$log" 2>&1 </dev/null &
  SERVICE=$!
  disown "$SERVICE"
  echo "$SERVICE" >>"$SHARED/services"
}

# Keys and settings of this segment only; mounted over /etc/ssh/ssh_config, so that plain `ssh
# host2` works for every launcher.
ssh_keys() {
  local folder=$SHARED/ssh
  mkdir -m 700 "$folder"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/user"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
  printf '%s\n' "HostKey $folder/host" "AuthorizedKeysFile $folder/user.pub" "StrictModes no" "PermitRootLogin yes" \
    "PidFile none" "UsePAM no" "MaxStartups 100" >"$folder/sshd_config"
  printf '%s\n' "Host *" "  IdentityFile $folder/user" "  StrictHostKeyChecking no" "  UserKnownHostsFile /dev/null" \
    "  LogLevel ERROR" "  ConnectTimeout 5" >"$folder/config"
  mount --bind "$folder/config" /etc/ssh/ssh_config
}

slurm_up() { # I...
  local folder=$SHARED/slurm i nodes=
  export SLURM_CONF=$folder/slurm.conf
  mkdir -p "$folder"/{state,munge,log}
  for i in "$@"; do nodes+="NodeName=host$i NodeAddr=$NETWORK.$i CPUs=8"$'\n'; done
  slurm_settings "$folder" "$nodes" >"$SLURM_CONF"
  # No host has a tree of cgroups here; a named plugin avoids the search for one.
  echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"
  (umask 077 && head -c 64 /dev/urandom >"$folder/munge/key")
  service "$folder/log/munged" munged --foreground --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
    --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" --log-file="$folder/log/munge"
  until_true 30 munge --no-input -S "$folder/munge/socket"
  service "$folder/log/slurmctld" slurmctld -D
  for i in "$@"; do
    mkdir -p "$folder/spool-host$i"
    enter "$i"
    service "$folder/log/slurmd-host$i" "${ENTER[@]}" slurmd -D -N "host$i"
  done
  until_true 60 slurm_is_idle $# || { tail -n 5 "$folder"/log/*; return 1; }
}
slurm_settings() { # FOLDER NODES
  cat <<END
ClusterName=segment
SlurmctldHost=head($NETWORK.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$1/munge/socket
StateSaveLocation=$1/state
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd-%n.pid
SlurmdSpoolDir=$1/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdTimeout=15
KillWait=5
MailProg=/bin/true
ReturnToService=2
$2PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES
END
}
slurm_is_idle() { [ "$(sinfo -hN -t idle -o %N | wc -l)" = "$1" ]; }

etcd_up() {
  service "$SHARED/log/etcd" env ETCD_UNSUPPORTED_ARCH="$(uname -m)" etcd --name segment --data-dir "$SHARED/etcd" \
    --enable-v2 --unsafe-no-fsync --listen-client-urls "http://$NETWORK.254:2379" \
    --advertise-client-urls http://head:2379
  echo "$SERVICE" >"$SHARED/etcd.pid"
  until_true 30 env ETCDCTL_API=3 etcdctl --endpoints http://head:2379 endpoint health
}
etcd_kill() { kill -KILL "$(cat "$SHARED/etcd.pid")"; }
