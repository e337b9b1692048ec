#!/usr/bin/env bash
# The documents are consistent: see documents.py. usage: documents.sh BUILD SOURCE
set -euo pipefail
exec python3 "$(dirname "$0")/documents.py" "$2"
