#!/bin/bash
# Runs the tests of object storage against real servers on this machine: versitygw for S3, fake-gcs-server for Google Cloud
# Storage and Azurite for Azure Blob Storage. Servers that are missing are installed into $TOOLS (default: below the user's
# cache); one that cannot be installed is skipped, except the one for S3. SERVERS says which to start (default: s3 gs azblob).
# Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."
servers=" ${SERVERS:-s3 gs azblob} "
tools=${TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/servegrid-tools}
work=$(mktemp -d)
started=()
stop() {
  for server in "${started[@]}"; do kill "$server" 2>/dev/null || true; done
  rm -rf "$work"
}
trap stop EXIT
mkdir -p "$tools"

# free prints a port that nobody uses.
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# await waits until a port answers.
await() {
  for _ in $(seq 100); do
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.1
  done
  echo "the server on port $1 does not start; its log:" >&2
  cat "$work"/*.log >&2
  return 1
}

# installed installs a Go program unless it is there.
installed() {
  [ -x "$tools/$1" ] || GOBIN=$tools go install "$2" >"$work/install-$1.log" 2>&1
}

installed versitygw github.com/versity/versitygw/cmd/versitygw@v1.8.0
export AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY AWS_REGION=us-east-1
AWS_SECRET_ACCESS_KEY=$(head -c 30 /dev/urandom | base64 | tr -d '/+=')
port=$(free)
mkdir -p "$work/s3/bucket"
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
  "$tools/versitygw" --port "127.0.0.1:$port" posix "$work/s3" >"$work/s3.log" 2>&1 &
started+=($!)
await "$port"
export SERVEGRID_TEST_S3="s3://bucket?endpoint=http://127.0.0.1:$port&use_path_style=true"

if [[ $servers != *" gs "* ]]; then
  :
elif installed fake-gcs-server github.com/fsouza/fake-gcs-server@v1.56.1; then
  port=$(free)
  mkdir -p "$work/gs/bucket"
  touch "$work/gs/bucket/.keep"
  "$tools/fake-gcs-server" -scheme http -host 127.0.0.1 -port "$port" -public-host "127.0.0.1:$port" -backend memory \
    -data "$work/gs" >"$work/gs.log" 2>&1 &
  started+=($!)
  await "$port"
  export STORAGE_EMULATOR_HOST=127.0.0.1:$port SERVEGRID_TEST_GS=gs://bucket
else
  echo "Google Cloud Storage is not tested: fake-gcs-server cannot be installed" >&2
fi

azurite=$tools/azurite/node_modules/.bin/azurite-blob
if [[ $servers != *" azblob "* ]]; then
  :
elif [ -x "$azurite" ] || npm install --silent --prefix "$tools/azurite" azurite@3 >"$work/install-azurite.log" 2>&1; then
  port=$(free)
  export AZURE_STORAGE_ACCOUNT=tester AZURE_STORAGE_KEY
  AZURE_STORAGE_KEY=$(head -c 32 /dev/urandom | base64)
  AZURITE_ACCOUNTS=$AZURE_STORAGE_ACCOUNT:$AZURE_STORAGE_KEY "$azurite" --silent --inMemoryPersistence --skipApiVersionCheck \
    --blobHost 127.0.0.1 --blobPort "$port" >"$work/azblob.log" 2>&1 &
  started+=($!)
  await "$port"
  export SERVEGRID_TEST_AZBLOB="azblob://bucket?localemu=true&protocol=http&domain=127.0.0.1:$port"
else
  echo "Azure Blob Storage is not tested: azurite cannot be installed" >&2
fi

go test -tags full -count=1 -run Cloud "$@" ./sweep/storage
