#!/usr/bin/env bash
# Builds and runs every test, in four lanes side by side: the agents' suite, which mostly waits (for Leases, quarantines, API
# servers that start), so many of its tests at a time; the kernel's, most of whose time is an emulated guest; the model's, which
# waits for nothing and takes what time the others leave; and all others. What the first three said is shown when the fourth is
# through, and what failed in any of them is named once more at the end.
# Fails if any test does, and runs the others all the same.
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests of agents at a time; as many real API servers at the most (agent/tests/agents/cluster.rs).
readonly AGENTS_AT_ONCE=4
# Of the others: those that look at kernels wait, too, for carriers and for addresses that are to be checked first.
readonly OTHERS_AT_ONCE=4
# Of the model.
readonly MODELS_AT_ONCE=2

readonly all=("${CARGO:-cargo}" test --workspace --locked --no-fail-fast)
# With the pure core optimised (Cargo.toml): it spends its minutes there.
readonly model=("${CARGO:-cargo}" test --package berth-tests --locked --profile core --test model)
# As `cargo test --no-run` names them: 'Executable tests/house.rs (…)', 'Executable tests/agents/main.rs (…)'.
names() {
    sed -n "s#^ *Executable tests/\([a-z_]*\)\(\.rs\|/main\.rs\) .*#\1#p" | sort -u
}

logs=$(mktemp -d)
lanes=()
# Cut short, nothing goes on: cargo, its tests and their API servers are one group for each lane.
trap 'for lane in "${lanes[@]}"; do kill -- "-$lane" 2>/dev/null || true; done; rm -rf "$logs"' EXIT

# Runs the tests $1 by the command that follows, beside the rest.
lane() {
    set -m
    "${@:2}" >"$logs/$1" 2>&1 &
    lanes+=($!)
    set +m
}

# Waits for the lane $2 of the binary $1, and shows what it said.
shown() {
    local result=0
    wait "$2" || result=1
    printf '\n== %s, beside all that ==\n' "$1"
    cat "$logs/$1"
    return "$result"
}

# Behind whatever else is done here: .ci/run has its cluster beside it.
nice "${all[@]}" --no-run 2>&1 | tee "$logs/build"
nice "${model[@]}" --no-run
mapfile -t others < <(names <"$logs/build" | grep -vx -e agents -e kernel -e model)
[ "${#others[@]}" -gt 10 ] || { echo "tests/run.sh: what cargo says of its tests can't be read" >&2; exit 1; }

failed=0
lane agents "${all[@]}" --test agents -- --test-threads "$AGENTS_AT_ONCE"
lane kernel "${all[@]}" --test kernel -- --test-threads "$OTHERS_AT_ONCE"
lane model nice "${model[@]}" -- --test-threads "$MODELS_AT_ONCE"
"${all[@]}" --lib --bins "${others[@]/#/--test=}" -- --test-threads "$OTHERS_AT_ONCE" 2>&1 | tee "$logs/others" || failed=1
"${all[@]}" --doc 2>&1 | tee "$logs/docs" || failed=1
shown kernel "${lanes[1]}" || failed=1
shown model "${lanes[2]}" || failed=1
shown agents "${lanes[0]}" || failed=1
lanes=()

printf '\n== all of it ==\n'
grep -hE '^test result: ' "$logs"/* | awk '{ passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed }'
sed -n 's/^test \(.*\) \.\.\. FAILED$/FAILED \1/p' "$logs"/*
exit "$failed"
