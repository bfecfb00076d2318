#!/usr/bin/env bash
# Runs the programs of a control plane for a test process, and outlives it just long enough to stop them.
#
#   supervise.sh FOLDER
#
# Reads commands, a line each, and answers each with a line that begins with "ok" or "no":
#   start NAME      the command is in FOLDER/NAME.command, an argument per line; the answer has its pid
#   stop NAME       SIGTERM, and SIGKILL after five seconds (an API server with watchers would wait for a minute); answers
#                   when it is gone
#   kill NAME       SIGKILL, at once
#   pause NAME      SIGSTOP, resume NAME: SIGCONT
# When its input ends, because the test process did, however it did, all are stopped, the last one started first: an API
# server that has lost its etcd hangs. What has a file FOLDER/NAME.off is killed without asking, as a machine that is switched
# off. Then what the file FOLDER/after says is done, and the folder is removed; of one with a file named "keep", the logs stay.
# Should this script itself be killed, the kernel kills its children.
set -uo pipefail
cd "$1"
exec 2>>supervisor.log

declare -A pids
started=()

start() {
    local command
    mapfile -t command <"$1.command"
    setpriv --pdeathsig KILL -- "${command[@]}" </dev/null >>"$1.log" 2>&1 &
    pids[$1]=$!
    started+=("$1")
}

# A program that is gone has been waited for by then: its pid is nobody else's.
is_there() {
    [ -n "${pids[$1]:-}" ] && kill -0 "${pids[$1]}" 2>/dev/null
}

end() {
    local tries
    if is_there "$1"; then
        kill "-$2" "${pids[$1]}"
        kill -CONT "${pids[$1]}" 2>/dev/null
        for ((tries = 0; tries < 100; tries++)); do
            is_there "$1" || break
            sleep 0.05
        done
        is_there "$1" && kill -KILL "${pids[$1]}"
        wait "${pids[$1]}" 2>/dev/null
    fi
    unset "pids[$1]"
}

while read -r verb name; do
    case $verb in
    start) start "$name" && echo "ok ${pids[$name]}" || echo "no" ;;
    stop) end "$name" TERM && echo ok ;;
    kill) end "$name" KILL && echo ok ;;
    pause) is_there "$name" && kill -STOP "${pids[$name]}" && echo ok || echo "no: $name is not running" ;;
    resume) is_there "$name" && kill -CONT "${pids[$name]}" && echo ok || echo "no: $name is not running" ;;
    *) echo "no: $verb is not a command" ;;
    esac
done

for ((last = ${#started[@]} - 1; last >= 0; last--)); do
    if [ -e "${started[last]}.off" ]; then
        end "${started[last]}" KILL
    else
        end "${started[last]}" TERM
    fi
done
[ ! -e after ] || bash after
if [ -e keep ]; then
    rm -rf etcd disks images
else
    rm -rf "$PWD"
fi
