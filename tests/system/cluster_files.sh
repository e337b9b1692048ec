#!/usr/bin/env bash
# The files of examples/cluster are sound: see cluster_files.py. usage: cluster_files.sh BUILD SOURCE
set -euo pipefail
exec /usr/bin/python3 "$(dirname "$0")/cluster_files.py" "$2"
