//! How a program opens a database with the recommended settings, by language.
//!
//! Python: the module `sqlite3`. Node: `node:sqlite`, or `better-sqlite3` with `db.pragma`; a URI needs `sqlite3` from
//! npm, whose calls return before they are done. Go: `mattn/go-sqlite3`, where a hook reaches every connection of the
//! pool. JDBC: Xerial's driver.
//!
//! A connection that names our VFS finds it only if the library was loaded before: by a connection in memory, as
//! `crates/sqlite/tests/hosts` and `crates/sqlite/tests/it/extension.rs` do it. The library stays loaded.

use flashwise_tune::Comparison;

/// The library with the VFS, as `load_extension` takes it.
const LIBRARY: &str = "libflashwise_sqlite";
/// Stands for the user's file where there is none.
const FILE: &str = "app.db";

/// A language, and what its program says; empty where nothing is set in a connection.
pub(crate) fn snippets(c: &Comparison) -> Vec<(&'static str, String)> {
    if c.at_open.is_empty() && c.uri.is_none() {
        return Vec::new();
    }
    let file = c.changed.as_ref().map(|changed| changed.file.as_str()).or(c.file.as_deref()).unwrap_or(FILE);
    let opening = Opening { name: c.uri.as_deref().unwrap_or(file), has_vfs: c.uri.is_some(), pragmas: &c.at_open };
    vec![("Python", opening.python()), ("Node", opening.node()), ("Go", opening.go()), ("JDBC", opening.jdbc())]
}

/// What every language has to say.
struct Opening<'a> {
    /// The file, or its URI.
    name: &'a str,
    /// Whether the library is needed.
    has_vfs: bool,
    pragmas: &'a [String],
}

impl Opening<'_> {
    fn python(&self) -> String {
        let name = quoted(self.name);
        let open = match self.has_vfs {
            false => format!("db = sqlite3.connect({name})"),
            true => format!(
                "db = sqlite3.connect(\":memory:\"); db.enable_load_extension(True); db.load_extension({}); db = \
                 sqlite3.connect({name}, uri=True)",
                quoted(LIBRARY)
            ),
        };
        open + &self.calls("db.execute(SQL)")
    }

    fn node(&self) -> String {
        let name = quoted(self.name);
        let open = match self.has_vfs {
            false => format!("const db = new DatabaseSync({name})"),
            true => format!(
                "const loader = new sqlite3.Database(\":memory:\"); await new Promise((done, failed) => \
                 loader.loadExtension({}, (error) => error ? failed(error) : done())); const db = new \
                 sqlite3.Database({name}, sqlite3.OPEN_READWRITE | sqlite3.OPEN_URI)",
                quoted(LIBRARY)
            ),
        };
        open + &self.calls("db.exec(SQL)")
    }

    fn go(&self) -> String {
        let load = match self.has_vfs {
            false => String::new(),
            true => format!(
                "sql.Register(\"loader\", &sqlite3.SQLiteDriver{{Extensions: []string{{{}}}}}); loader, err := \
                 sql.Open(\"loader\", \":memory:\"); err = loader.Ping(); ",
                quoted(LIBRARY)
            ),
        };
        let (register, driver) = match self.pragmas {
            [] => (String::new(), "sqlite3"),
            pragmas => {
                let hook = format!(
                    "sql.Register(\"fitted\", &sqlite3.SQLiteDriver{{ConnectHook: func(c *sqlite3.SQLiteConn) error {{ _, \
                     err := c.Exec({}, nil); return err }}}}); ",
                    quoted(&pragmas.join("; "))
                );
                (hook, "fitted")
            }
        };
        format!("{load}{register}db, err := sql.Open({}, {})", quoted(driver), quoted(self.name))
    }

    fn jdbc(&self) -> String {
        let load = match self.has_vfs {
            false => String::new(),
            true => format!(
                "SQLiteConfig config = new SQLiteConfig(); config.enableLoadExtension(true); \
                 config.createConnection(\"jdbc:sqlite::memory:\").createStatement().execute(\"SELECT \
                 load_extension('{LIBRARY}')\"); "
            ),
        };
        let open =
            format!("Connection db = DriverManager.getConnection({})", quoted(&format!("jdbc:sqlite:{}", self.name)));
        format!("{load}{open}{}", self.calls("db.createStatement().execute(SQL)"))
    }

    /// A call for each statement.
    fn calls(&self, call: &str) -> String {
        self.pragmas.iter().map(|pragma| format!("; {}", call.replace("SQL", &quoted(pragma)))).collect()
    }
}

/// A string in double quotes, as all four languages write it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    #[test]
    fn each_language_opens_the_user_s_file_and_sets_what_belongs_to_a_connection() {
        let mut c = crate::sample::samsung();
        (c.file, c.uri, c.at_open) = (Some("my \"shop\".db".into()), None, vec!["PRAGMA cache_size = -8192".into()]);
        let snippets = snippets(&c);
        assert_eq!(snippets[0].1, r#"db = sqlite3.connect("my \"shop\".db"); db.execute("PRAGMA cache_size = -8192")"#);
        assert!(snippets.iter().all(|(_, text)| text.contains("cache_size = -8192") && text.contains("shop")));
        c.at_open.clear();
        assert!(super::snippets(&c).is_empty(), "what is in the file needs no word in a program");
    }

    fn through_the_library() -> Vec<(&'static str, String)> {
        let mut c = crate::sample::samsung();
        c.uri = Some("file:app-fitted.db?vfs=flashwise".into());
        snippets(&c)
    }

    #[test]
    fn a_layout_is_opened_through_the_library() {
        assert!(through_the_library().iter().all(|(_, text)| text.contains(LIBRARY) && text.contains("vfs=flashwise")));
    }

    /// Words of a text, each behind the one before.
    fn assert_in_order(text: &str, words: &[&str]) {
        let mut rest = text;
        for word in words {
            let Some((_, behind)) = rest.split_once(word) else { panic!("{word} is not where it belongs in: {text}") };
            rest = behind;
        }
    }

    #[test]
    fn the_library_is_loaded_before_the_uri_is_opened_the_way_that_the_host_programs_do_it() {
        let snippets = through_the_library();
        let of = |language: &str| &snippets.iter().find(|(name, _)| *name == language).unwrap().1;
        let go = ["Extensions: []string{", "loader, err := sql.Open(", "\":memory:\")", "loader.Ping()"];
        let host = include_str!("../../../sqlite/tests/hosts/host.go");
        assert_in_order(host, &[&go[..], &["sql.Open(\"sqlite3\", uri"]].concat());
        assert_in_order(of("Go"), &[&go[..], &["ConnectHook", "sql.Open(\"fitted\", \"file:"]].concat());
        let host = include_str!("../../../sqlite/tests/hosts/host.js");
        assert_in_order(host, &["await on(loader, 'loadExtension'", "await open('file:host.db?vfs=flashwise"]);
        let node = ["await new Promise", "loader.loadExtension", "sqlite3.Database(\"file:", "sqlite3.OPEN_URI"];
        assert_in_order(of("Node"), &node);
        let java =
            ["SQLiteConfig config =", "enableLoadExtension(true)", "load_extension(", "Connection db =", ":file:"];
        assert_in_order(of("JDBC"), &java);
    }

    #[test]
    fn in_go_a_hook_is_registered_only_for_statements() {
        let mut c = crate::sample::samsung();
        c.at_open.clear();
        let go = &snippets(&c)[2].1;
        assert!(
            !go.contains("ConnectHook") && go.ends_with("sql.Open(\"sqlite3\", \"file:app-fitted.db?vfs=flashwise\")"),
            "{go}"
        );
    }

    /// The system's own loads extensions of SQLite; some other builds cannot.
    const PYTHON: &str = "/usr/bin/python3";
    /// Without our VFS and with it.
    const BOTH: [Option<&str>; 2] = [None, Some(WITH_VFS)];
    const WITH_VFS: &str = "file:app.db?vfs=flashwise&concurrent-write-back=8";

    /// Runs a program around what a language is given: opens a database with one row, prints the size of the
    /// connection's page cache and the rows. `run` has the arguments behind the program's file.
    fn opens_it(language: &str, uris: &[Option<&str>], program: &str, source: &str, run: impl Fn() -> Command) {
        let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let mut c = crate::sample::samsung();
        (c.file, c.at_open) = (Some("app.db".into()), vec!["PRAGMA cache_size = -8192".into()]);
        for uri in uris {
            c.uri = uri.map(str::to_owned);
            let place = tempfile::tempdir().unwrap();
            let make = "import sqlite3; sqlite3.connect('app.db').executescript('CREATE TABLE t AS SELECT 1')";
            let made = Command::new(PYTHON).args(["-c", make]).current_dir(place.path()).status();
            assert!(made.unwrap().success());
            let given = &snippets(&c).into_iter().find(|(name, _)| *name == language).unwrap().1;
            std::fs::write(place.path().join(program), source.replace("GIVEN", given)).unwrap();
            let output =
                run().arg(program).current_dir(place.path()).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
            let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            assert_eq!(said, ["-8192 1\n", ""], "{given}");
        }
    }

    #[test]
    fn what_python_is_given_opens_the_database_and_sets_the_connection() {
        if !Path::new(PYTHON).exists() {
            return println!("skipped: this machine has no {PYTHON}");
        }
        let source = "import sqlite3\nGIVEN\nprint(db.execute('PRAGMA cache_size').fetchone()[0], \
                      db.execute('SELECT count(*) FROM t').fetchone()[0])";
        opens_it("Python", &BOTH, "program.py", source, || Command::new(PYTHON));
    }

    /// What `scripts/extension-hosts` has set up; `None`, and a line that says so, where it did not.
    fn set_up(name: &str) -> Option<PathBuf> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
        let found = target.join("extension-hosts").join(name).canonicalize().ok();
        if found.is_none() {
            println!("skipped: scripts/extension-hosts did not set up {name}");
        }
        found
    }

    #[test]
    #[ignore = "its host takes minutes to build: make test-full does and runs it"]
    fn what_node_is_given_opens_the_database_and_sets_the_connection() {
        let Some(modules) = set_up("node/built").map(|built| built.with_file_name("node_modules")) else { return };
        let source = "const sqlite3 = require('sqlite3');\n(async () => { GIVEN\ndb.get('SELECT cache_size, (SELECT \
                      count(*) FROM t) AS n FROM pragma_cache_size', (_, row) => console.log(row.cache_size, row.n)) })()";
        opens_it("Node", &[Some(WITH_VFS)], "program.js", source, || {
            let mut node = Command::new("node");
            node.env("NODE_PATH", &modules);
            node
        });
    }

    #[test]
    #[ignore = "its host takes minutes to build: make test-full does and runs it"]
    fn what_go_is_given_opens_the_database_and_sets_the_connection() {
        let Some(hosts) = set_up("go-host").map(|host| host.with_file_name("")) else { return };
        let source = "package main\nimport (\"database/sql\"; \"fmt\"; sqlite3 \"github.com/mattn/go-sqlite3\")\n\
                      func main() {\nGIVEN\nif err != nil { panic(err) }\nvar cache, rows int\n\
                      if err = db.QueryRow(\"PRAGMA cache_size\").Scan(&cache); err != nil { panic(err) }\n\
                      if err = db.QueryRow(\"SELECT count(*) FROM t\").Scan(&rows); err != nil { panic(err) }\n\
                      fmt.Println(cache, rows)\n}";
        opens_it("Go", &BOTH, "program.go", source, || {
            let mut go = Command::new("go");
            go.args(["run", "-tags", "libsqlite3"]).env("GOCACHE", hosts.join("go-cache"));
            go.envs([("GO111MODULE", "off"), ("GOFLAGS", ""), ("GOPATH", "/usr/share/gocode"), ("CGO_ENABLED", "1")]);
            go
        });
    }

    #[test]
    #[ignore = "its host takes minutes to install: make test-full does and runs it"]
    fn what_java_is_given_opens_the_database_and_sets_the_connection() {
        let Some(driver) = set_up("jdbc.jar") else { return };
        let source = "import java.sql.*;\nimport org.sqlite.SQLiteConfig;\nclass Program {\n\
                      public static void main(String[] none) throws Exception {\nGIVEN;\n\
                      System.out.println(read(db, \"PRAGMA cache_size\") + \" \" + read(db, \"SELECT count(*) FROM t\"));\n}\n\
                      static int read(Connection db, String query) throws SQLException {\n\
                      return db.createStatement().executeQuery(query).getInt(1);\n}\n}";
        opens_it("JDBC", &BOTH, "Program.java", source, || {
            let mut java = Command::new("java");
            java.arg("-cp").arg(&driver);
            java
        });
    }
}
