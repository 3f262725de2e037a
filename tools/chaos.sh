#!/usr/bin/env bash
# A sweep of 2,000 points through the queue while its workers, server and coordinator are killed with -9, the network fails and
# disks are full; a minute and a half on two quiet cores. Needs Linux and the right to mount a tmpfs. CHAOS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/.."
export CHAOS_POINTS=${CHAOS_POINTS:-2000} CHAOS_REQUESTS=${CHAOS_REQUESTS:-20000} CHAOS_KILL_EVERY_MS=${CHAOS_KILL_EVERY_MS:-3000} CHAOS_ACK_WAIT_MS=${CHAOS_ACK_WAIT_MS:-3000}
go test -run '^TestChaos$' -count=1 -v -timeout 30m ./cmd/servegrid
