#!/bin/sh
# Creates a small SQLite database, then fits it to a simulated drive with the queries of queries.sql.
# Usage: fit-a-database.sh [DIRECTORY]; the output goes there, by default to a new directory under /tmp.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

flashwise=${FLASHWISE:-}
[ -n "$flashwise" ] || flashwise=$(command -v flashwise || true)
[ -n "$flashwise" ] || flashwise=$here/../target/release/flashwise
if ! [ -x "$flashwise" ]; then
    echo 'fit-a-database: no flashwise; run "make install", or "cargo build --release", or set FLASHWISE' >&2
    exit 1
fi

out=${1:-$(mktemp -d)}
mkdir -p "$out"

# Any plain SQLite file will do. This one is left by the built-in workload: 50,000 rows in table KV.
"$flashwise" fit sqlite --on sim:intel-optane-905p --rows 50000 --rounds 1 --time-budget 2s --report "$out/make" --save-database "$out/kv.db" >"$out/make.log"

# The original is only read; all work is done on copies.
"$flashwise" fit sqlite "$out/kv.db" --sql "$here/queries.sql" --on sim:samsung-960-evo --page-cache 256k --time-budget 20s --report "$out/report"
echo "Made in $out: kv.db, report/report.html"
