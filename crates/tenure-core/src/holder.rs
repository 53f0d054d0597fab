use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The holder of a lease, or a contender for it. Its name is informational, and never proves anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    id: Arc<str>,
    labels: BTreeMap<String, String>,
    address: Option<String>,
}

/// Error of an invalid holder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HolderError(String);

impl Holder {
    /// The longest id, address, label name or label text, in bytes.
    pub const TEXT_MAX: usize = 200;

    /// The largest number of labels.
    pub const LABELS_MAX: usize = 16;

    /// A holder with this id, such as `host-a`.
    pub fn new(id: &str) -> Result<Self, HolderError> {
        check("the id of a holder", id)?;
        Ok(Self { id: id.into(), labels: BTreeMap::new(), address: None })
    }

    /// Adds or replaces an informational label.
    pub fn label(mut self, name: &str, text: &str) -> Result<Self, HolderError> {
        check("the name of a label", name)?;
        check("the text of a label", text)?;
        self.labels.insert(name.to_owned(), text.to_owned());
        if self.labels.len() > Self::LABELS_MAX {
            return Err(HolderError(format!(
                "a holder has at most {} labels: remove some",
                Self::LABELS_MAX
            )));
        }
        Ok(self)
    }

    /// Sets the address at which the holder can be reached.
    pub fn at(mut self, address: &str) -> Result<Self, HolderError> {
        check("the address of a holder", address)?;
        self.address = Some(address.to_owned());
        Ok(self)
    }

    /// The id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The labels, by name.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// The address at which the holder can be reached, if it is set.
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

fn check(what: &str, text: &str) -> Result<(), HolderError> {
    if text.is_empty() {
        return Err(HolderError(format!("{what} must not be empty: give it a name such as web-1")));
    }
    if text.len() > Holder::TEXT_MAX {
        return Err(HolderError(format!(
            "{what} has at most {} bytes, and this one has {}: shorten it",
            Holder::TEXT_MAX,
            text.len()
        )));
    }
    if text.chars().any(char::is_control) {
        return Err(HolderError(format!(
            "{what} must not contain control characters: take them out of {text:?}"
        )));
    }
    Ok(())
}
