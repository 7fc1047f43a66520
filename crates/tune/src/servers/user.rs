//! The user who runs a server that refuses to run as root, or should not.

/// A user of the system, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) group: u32,
}

impl User {
    /// The user of that name if this process is root, or `nobody` if that does not exist; `None` if this process is not
    /// root.
    pub(crate) fn instead_of_root(name: &str) -> Option<Self> {
        let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let nobody = Self { id: 65_534, group: 65_534 };
        let user = || user_of(&known, name).or_else(|| user_of(&known, "nobody")).unwrap_or(nobody);
        rustix::process::geteuid().is_root().then(user)
    }
}

fn user_of(known: &str, name: &str) -> Option<User> {
    let fields = known.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some(User { id: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let known = "postgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:PostgreSQL:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(user_of(known, "postgres"), Some(User { id: 101, group: 104 }));
        assert_eq!(user_of(known, "nobody"), None);
    }
}
