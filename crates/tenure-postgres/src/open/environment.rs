use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The variables that configure access to a server: those that begin with `PG`, and `HOME`.
///
/// The caller passes them in, so that a program can use others than those of its process.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of this process.
    pub(crate) fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("PG") || name == "HOME")
            .collect()
    }

    /// A variable that is set and not empty: an empty variable is as if not set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A file in the home directory.
    pub(crate) fn home(&self, file: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.get("HOME")?).join(file))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Shows only the names: the values are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
