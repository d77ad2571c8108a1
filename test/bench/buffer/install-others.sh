#!/usr/bin/env bash
# Installs the alternatives that `append.bench.ts`, `density.bench.ts` and `service/storage.bench.ts` compare with into a folder of their own: they are no dependencies.
# Run: test/bench/buffer/install-others.sh FOLDER
set -euo pipefail
folder=${1:?a folder to install into}
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || echo '{ "private": true }' > package.json
npm install --no-audit --no-fund classic-level@3 lmdb@3 @duckdb/node-api@latest
echo "now: BENCH_OTHERS=$PWD node test/bench/buffer/append.bench.ts"
