# The hosts, agents and faults of faults/00_job.sh. Most faults wait, and training computes: it has a
# segment of its own, beside theirs.
# shellcheck shell=bash
source "$ROOT/tests/cluster/faults/00_job.sh"
