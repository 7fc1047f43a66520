//! How a program opens a database with the recommended settings, by language.
//!
//! Python: the module `sqlite3`. Node: `node:sqlite`, or `better-sqlite3` with `db.pragma`; a URI needs `sqlite3` from
//! npm. Go: `mattn/go-sqlite3`, where a hook reaches every connection of the pool. JDBC: Xerial's driver.

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
    let name = quoted(c.uri.as_deref().unwrap_or(file));
    let (has_vfs, pragmas) = (c.uri.is_some(), c.at_open.join("; "));
    let calls = |call: &str| {
        let call = |pragma: &String| format!("; {}", call.replace("SQL", &quoted(pragma)));
        c.at_open.iter().map(call).collect::<String>()
    };
    let library = quoted(LIBRARY);
    vec![
        (
            "Python",
            match has_vfs {
                false => format!("db = sqlite3.connect({name}){}", calls("db.execute(SQL)")),
                true => format!(
                    "db = sqlite3.connect(\":memory:\"); db.enable_load_extension(True); db.load_extension({library}); db = \
                 sqlite3.connect({name}, uri=True){}",
                    calls("db.execute(SQL)")
                ),
            },
        ),
        (
            "Node",
            match has_vfs {
                false => format!("const db = new DatabaseSync({name}){}", calls("db.exec(SQL)")),
                true => format!(
                    "const loader = new sqlite3.Database(\":memory:\"); loader.loadExtension({library}); const db = new \
                 sqlite3.Database({name}, sqlite3.OPEN_READWRITE | sqlite3.OPEN_URI){}",
                    calls("db.exec(SQL)")
                ),
            },
        ),
        ("Go", {
            let extensions = if has_vfs { format!("Extensions: []string{{{library}}}, ") } else { String::new() };
            let hook = match pragmas.is_empty() {
                true => String::new(),
                false => format!(
                    "ConnectHook: func(c *sqlite3.SQLiteConn) error {{ _, err := c.Exec({}, nil); return err }}",
                    quoted(&pragmas)
                ),
            };
            format!(
                "sql.Register(\"fitted\", &sqlite3.SQLiteDriver{{{extensions}{hook}}}); db, err := \
                 sql.Open(\"fitted\", {name})"
            )
        }),
        ("JDBC", {
            let url = quoted(&format!("jdbc:sqlite:{}", c.uri.as_deref().unwrap_or(file)));
            let load = match has_vfs {
                false => String::new(),
                true => format!(
                    "config.enableLoadExtension(true); config.createConnection(\"jdbc:sqlite:\").createStatement()\
                     .execute(\"SELECT load_extension('{LIBRARY}')\"); "
                ),
            };
            format!("{load}db = DriverManager.getConnection({url}){}", calls("db.createStatement().execute(SQL)"))
        }),
    ]
}

/// A string in double quotes, as all four languages write it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_layout_is_opened_through_the_library() {
        let mut c = crate::sample::samsung();
        c.uri = Some("file:app-fitted.db?vfs=flashwise".into());
        assert!(super::snippets(&c).iter().all(|(_, text)| text.contains(LIBRARY) && text.contains("vfs=flashwise")));
    }
}
