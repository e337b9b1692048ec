# lockstep doctor finds obstacles before a job meets them.
# shellcheck shell=bash
doctor() { on host3 "$BIN/lockstep" doctor --hosts host1,host2,host3 --ports 29500,29600 "$@"; }

test_doctor_on_hosts_that_are_well() {
  within 60 0 doctor
  says '^pass +links +3 pairs' '^pass +firewall' '^pass +libtorch .*everywhere' ' 0 failed$'
}

test_doctor_names_the_pair_that_is_cut() {
  pair_cut 1 2
  within 60 1 doctor --seconds 0
  says '^fail +links +host1 from host2: port 29500, port 29600: no answer' '^fail +links +host2 from host1: port'
  says_not '^fail .*host3'
}

test_doctor_names_the_host_that_is_off() {
  host_off 2
  within 60 1 doctor --seconds 0
  says '^fail +answers .*host2'
}

test_doctor_names_the_port_that_a_firewall_blocks() {
  on host2 nft add table inet wall
  on host2 nft add chain inet wall in '{ type filter hook input priority 0; }'
  on host2 nft add rule inet wall in tcp dport 29500 reject
  trap 'on host2 nft delete table inet wall' EXIT # even if the test fails, for later ones
  within 60 1 doctor --seconds 0
  says '^fail +links +host2 from host1, host3: port 29500: refused' '^warn +firewall +host2: nft blocks: tcp dport 29500'
  says_not '^fail .*29600'
}

test_doctor_names_the_slow_link() {
  tc qdisc add dev host3 root tbf rate 20mbit burst 32k latency 50ms # towards host3
  trap 'tc qdisc del dev host3 root' EXIT
  within 60 0 doctor
  says '^warn +speed +host1 to host3: 0.0[12] Gbit' '^warn +speed +host2 to host3: 0.0[12] Gbit'
}
