# Programs beside each other, and lines that tell how far they are; sourced by compare.sh after
# scripts/lib.sh.
#
# The lines go to the standard error; results are alone on the standard output. On a terminal one line
# is written again and again. Elsewhere a line comes twice a minute, without control characters.

part=
part_start=$SECONDS
running= # a folder with a file for each program that runs: its title, its log, its steps
pids=()

on_terminal() { [ -t 1 ] && [ -t 2 ]; }

# Before a result: the line of progress gives way.
clear_line() {
  if on_terminal; then printf '\e[K' >&2; fi
}

tell() { # TEXT
  clear_line
  echo "compare: $part  $1" >&2
}

begin_part() { # NAME
  part=$1 part_start=$SECONDS
  tell "begins"
  on_terminal && report_every 2 show_running || report_every 30 show_running
}

end_part() { # RESULT
  stop_reporting
  tell "$1 after $((SECONDS - part_start)) s"
}

show_running() {
  local file title log steps text=
  for file in "$running"/*; do
    { IFS='|' read -r title log steps <"$file"; } 2>/dev/null || continue # it has ended
    [ -z "$log" ] || title+=", step $(grep -c '^loss ' "$log" 2>/dev/null) of $steps"
    text+="${text:+; }$title"
  done
  text="compare: $part  $((SECONDS - part_start)) s  $text"
  if on_terminal; then
    printf '\e[K%.100s\r' "$text" >&2
  else
    echo "$text" >&2
  fi
}

# task TITLE LOG STEPS COMMAND ...: runs the command, with the title in the line. LOG gets its lines
# "loss N"; without steps it is "".
task() {
  local file=$running/$BASHPID code=0
  printf '%s|%s|%s\n' "${@:1:3}" >"$file"
  "${@:4}" || code=$?
  rm -f "$file"
  [ "$code" = 0 ] || tell "error: '$1' ended with $code after $((SECONDS - part_start)) s"
  return "$code"
}

# spawn COMMAND ...: begins a command beside the others, at most JOBS at a time.
spawn() {
  while [ "$(living "${pids[@]}")" -ge "$JOBS" ]; do sleep 0.2; done
  "$@" &
  pids+=($!)
}

living() { # PID ...: the number of those that have not ended
  local pid count=0
  for pid; do
    if kill -0 "$pid" 2>/dev/null; then count=$((count + 1)); fi
  done
  echo "$count"
}

# Waits for all spawned ones. The script ends if one has failed.
gather() {
  local pid
  for pid in "${pids[@]}"; do wait "$pid"; done
  pids=()
}

# The end of the script ends the programs, too; without their shells they would run on.
end_spawned() {
  local pid
  for pid in "${pids[@]}"; do
    kill $(cat "/proc/$pid/task/$pid/children" 2>/dev/null) "$pid" 2>/dev/null || true
  done
  [ -z "$running" ] || rm -rf "$running"
}
