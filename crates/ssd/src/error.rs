//! What can be wrong with a drive's configuration.

/// A configuration that describes no possible drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SsdError {
    /// No preset of that name.
    #[error("unknown preset '{name}': {known}")]
    UnknownPreset {
        /// The requested name.
        name: String,
        /// The name that was probably meant, and all names.
        known: String,
    },
    /// The text is not TOML, lacks a key or has one too many.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file.
        path: String,
        /// The parser's words, with line and column.
        reason: String,
    },
    /// A text describes an array where a drive is needed.
    #[error(
        "{path}: is an array of drives, but a single drive is required here: arrays work with 'simulate', 'sweep' and \
         'device check'"
    )]
    IsArray {
        /// The file.
        path: String,
    },
    /// A drive cannot be put into a state.
    #[error("{state}: {reason}")]
    Precondition {
        /// The state.
        state: &'static str,
        /// Why not.
        reason: String,
    },
    /// A value makes no sense, alone or beside the others.
    #[error("{path}: {key} = {value}: {reason}")]
    Impossible {
        /// The file.
        path: String,
        /// The key, with its table.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        reason: String,
    },
}
