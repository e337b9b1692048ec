#!/usr/bin/env bash
# Types the commands of documents: type.sh FILE.md..., in a clone's root. Changes only the files
# that the commands change.
#
# In a block "console", lines that begin with "$ " are commands, and lines with "> " continue the
# one above; the rest is output. A command that ends with "&" runs on once it has printed something;
# it is ended with its document. A command must end with 0, or with the code that "$ echo $?" below
# it shows. It must print the lines that contain "error: ".
set -euo pipefail

# Output after which a command of several minutes counts as good, and is ended.
last_words() { # COMMAND
  case $1 in
    "make test" | "make test "*) echo '^test: part 1 of' ;;
    "make train-ocr"*) echo '^setup: packages' ;;
    *"lockstep train --config"*) echo 'step: \[[0-9]*/' ;;
  esac
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed() { # WHERE TEXT
  tail -n 20 "$log" >&2
  echo "type: error: $1: $2" >&2
  exit 1
}

# In a shell that all commands of a document share: cd and export persist.
begin() { # COMMAND
  : >"$log"
  set -m
  (set +e; eval "$1") >>"$log" 2>&1 </dev/null &
  set +m
}
type_one() { # WHERE COMMAND CODE SHOWN
  local where=$1 command=$2 expected=$3 shown=$4 code=0 words line begin=$SECONDS
  case $command in
    "cd "* | "export "*) eval "$command"; return ;;
  esac
  words=
  [ "$expected" != 0 ] || words=$(last_words "$command")
  begin "$command"
  if [[ $command == *" &" ]]; then
    until [ -s "$log" ]; do
      [ $((SECONDS - begin)) -lt 60 ] || failed "$where" "said nothing within 60 s: $command"
      sleep 0.1
    done
    runs_on+=($!)
    echo "type: $where  runs: $command"
    return
  fi
  while kill -0 $! 2>/dev/null; do
    if [ -n "$words" ] && grep -q "$words" "$log"; then
      kill -TERM -$! 2>/dev/null || true
      wait $! 2>/dev/null || true
      echo "type: $where  ok, ended after $((SECONDS - begin)) s: $command"
      return
    fi
    [ $((SECONDS - begin)) -lt 900 ] || { kill -KILL -$!; failed "$where" "not done within 900 s: $command"; }
    sleep 0.1
  done
  wait $! || code=$?
  [ "$code" = "$expected" ] || failed "$where" "exit code $code, not $expected: $command"
  while read -r line; do
    [[ $line != *"error: "* ]] || grep -qF -- "$line" "$log" || failed "$where" "'$command' did not say: $line"
  done <<<"$shown"
  echo "type: $where  ok in $((SECONDS - begin)) s: $command"
}

# read_document FILE: into commands, their places, exit codes and expected output.
read_document() {
  local line number=0 inside=0 last=-1
  places=() commands=() codes=() shown=()
  while IFS= read -r line; do
    number=$((number + 1))
    case $inside,$line in
      0,'```console') inside=1 ;;
      1,'```') inside=0 ;;
      '1,$ echo $?') codes[last]= ;;
      '1,$ '*) last=$((last + 1)) places[last]=$1:$number commands[last]=${line#\$ } codes[last]=0 shown[last]= ;;
      '1,> '*) commands[last]+=$'\n'${line#> } ;;
      1,*) if [ -z "${codes[last]}" ]; then codes[last]=$line; else shown[last]+=$line$'\n'; fi ;;
    esac
  done <"$1"
}

total=0
for file in "$@"; do
  read_document "$file"
  runs_on=()
  for i in "${!commands[@]}"; do type_one "${places[i]}" "${commands[i]}" "${codes[i]}" "${shown[i]}"; done
  for group in "${runs_on[@]}"; do kill -KILL -"$group" 2>/dev/null || true; done
  total=$((total + ${#commands[@]}))
  echo "type: $file  ${#commands[@]} commands"
done
[ "$total" -gt 0 ] || { echo "type: error: $* have one type nothing" >&2; exit 1; }
echo "type: all $total commands are as their documents say"
