#!/usr/bin/env bash
# Known vulnerabilities of what a servegrid program is built from, by govulncheck.
#
#   tools/vulnerabilities.sh PROGRAM        (a build with symbols: without -ldflags -s)
#
# Fails when the program holds code that a known vulnerability is in. The database is made from a fixed version of the Go
# vulnerability database, so that a check does not change by itself: VULNDB=latest asks for the newest, and whoever raises
# dependencies raises the version here.
set -euo pipefail
program=$(realpath "$1")
database=golang.org/x/vulndb
version=${VULNDB:-v0.0.0-20261105234957-e22db6528018}
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

export GOFLAGS=-mod=mod GOBIN=$work/bin
go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
mkdir "$work/module"
cd "$work/module"
go mod init vulnerabilities 2>/dev/null
folder=$(go mod download -json "$database@$version" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
go install "$database/cmd/gendb@$version"

# gendb reads a repository, of which a module has only the files.
mkdir "$work/repository"
cp -r "$folder/data" "$work/repository/data"
chmod -R u+w "$work/repository"
cd "$work/repository"
git init -q
git add data
git -c user.name=check -c user.email=check@localhost commit -qm "the database"
"$work/bin/gendb" -repo "$work/repository" -out "$work/database" 2>/dev/null
cd "$OLDPWD"
"$work/bin/govulncheck" -db "file://$work/database" -mode binary "$program"
