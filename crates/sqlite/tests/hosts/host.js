// What a program in Node does with the extension: loads it once, names the VFS in a URI, writes, reads, backs up.
'use strict';
const sqlite3 = require('sqlite3');

const readWrite = sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE | sqlite3.OPEN_URI;
const on = (object, method, ...args) => new Promise((resolve, reject) => {
  object[method](...args, (error, result) => (error ? reject(error) : resolve(result)));
});
const open = (name) => new Promise((resolve, reject) => {
  const db = new sqlite3.Database(name, readWrite, (error) => (error ? reject(error) : resolve(db)));
});

async function main() {
  const loader = await open(':memory:');
  await on(loader, 'loadExtension', process.argv[2]);
  const db = await open('file:host.db?vfs=flashwise&write-aligned-stripes=64k&concurrent-write-back=8');
  await on(db, 'get', 'PRAGMA journal_mode = wal');
  await on(db, 'exec', 'CREATE TABLE t (x); BEGIN');
  const insert = db.prepare('INSERT INTO t VALUES (?)');
  for (let x = 0; x < 1000; x += 1) await on(insert, 'run', x);
  await on(insert, 'finalize');
  await on(db, 'exec', 'COMMIT');
  // A second connection reads while the first one has its log open.
  const reader = await open('file:host.db?vfs=flashwise');
  const { sum } = await on(reader, 'get', 'SELECT sum(x) AS sum FROM t');
  const { integrity_check: sound } = await on(reader, 'get', 'PRAGMA integrity_check');
  console.log(sum, sound);
  for (const each of [reader, db, loader]) await on(each, 'close');
}

main().catch((error) => { console.error(error); process.exitCode = 1; });
