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

# Any plain SQLite file will do. This one is left by the built-in workload: 50,000 rows in table KV. On the Optane `fit`
# changes nothing, so it has SQLite's default pages of 4 KiB.
"$flashwise" fit sqlite sim:intel-optane-905p --rows 50000 --rounds 1 --report "$out/make" --save-database "$out/kv.db" >"$out/make.log"

# The original is only read; all work is done on copies.
"$flashwise" fit sqlite --db "$out/kv.db" --sql "$here/queries.sql" --page-cache 256k --report "$out/report"
echo "Made in $out: kv.db, report/report.html"
