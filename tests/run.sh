#!/usr/bin/env bash
# Builds and runs every test, in two lanes side by side: the agents' suite, which mostly waits (for Leases, quarantines, API
# servers that start), so many of its tests at a time; and all others, which mostly compute. What the first lane said is shown
# when the second is through. Fails if any test does, and runs the others all the same.
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests of agents at a time; as many real API servers at the most (agent/tests/agents/cluster.rs).
readonly AGENTS_AT_ONCE=4
# Of the others: those that look at kernels wait, too, for carriers and for addresses that are to be checked first.
readonly OTHERS_AT_ONCE=4

readonly all=("${CARGO:-cargo}" test --workspace --locked)
# As `cargo test --no-run` names them: 'Executable tests/house.rs (…)', 'Executable tests/agents/main.rs (…)'.
names() {
    sed -n "s#^ *Executable tests/\([a-z_]*\)\(\.rs\|/main\.rs\) .*#\1#p" | sort -u
}

log=$(mktemp)
# Cut short, nothing goes on: cargo, its tests and their API servers are one group.
trap '[ -z "${agents:-}" ] || kill -- "-$agents" 2>/dev/null; rm -f "$log"' EXIT
"${all[@]}" --no-run 2>&1 | tee "$log"
mapfile -t others < <(names <"$log" | grep -vx agents)
[ "${#others[@]}" -gt 10 ] || { echo "tests/run.sh: what cargo says of its tests can't be read" >&2; exit 1; }

failed=0
set -m
"${all[@]}" --no-fail-fast --test agents -- --test-threads "$AGENTS_AT_ONCE" >"$log" 2>&1 &
agents=$!
set +m
"${all[@]}" --no-fail-fast --lib --bins "${others[@]/#/--test=}" -- --test-threads "$OTHERS_AT_ONCE" || failed=1
"${all[@]}" --doc || failed=1
printf '\n== the agents, beside all that ==\n'
wait "$agents" || failed=1
unset agents
cat "$log"
exit "$failed"
