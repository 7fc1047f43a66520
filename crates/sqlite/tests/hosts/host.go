// What a program in Go does with the extension: loads it once, names the VFS in a URI, writes, and reads from many
// goroutines through the connections of a pool.
package main

import (
	"database/sql"
	"fmt"
	"os"
	"sync"

	sqlite3 "github.com/mattn/go-sqlite3"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	sql.Register("with-flashwise", &sqlite3.SQLiteDriver{Extensions: []string{os.Args[1]}})
	loader, err := sql.Open("with-flashwise", ":memory:")
	must(err)
	must(loader.Ping())
	uri := "file:host.db?vfs=flashwise&write-aligned-stripes=64k&concurrent-write-back=8"
	db, err := sql.Open("sqlite3", uri+"&_journal_mode=WAL&_busy_timeout=10000")
	must(err)
	_, err = db.Exec("CREATE TABLE t (x)")
	must(err)
	var writers sync.WaitGroup
	for n := 0; n < 4; n++ {
		writers.Add(1)
		go func(n int) {
			defer writers.Done()
			tx, err := db.Begin()
			must(err)
			for x := n * 250; x < (n+1)*250; x++ {
				_, err = tx.Exec("INSERT INTO t VALUES (?)", x)
				must(err)
			}
			must(tx.Commit())
		}(n)
	}
	writers.Wait()
	var sum int
	var sound string
	must(db.QueryRow("SELECT sum(x) FROM t").Scan(&sum))
	must(db.QueryRow("PRAGMA integrity_check").Scan(&sound))
	fmt.Println(sum, sound)
	must(db.Close())
	must(loader.Close())
}
