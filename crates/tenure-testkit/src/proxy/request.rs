//! What rules and the log see of a request.

/// A request as rules and the log see it.
pub(crate) trait ProxiedRequest {
    /// The method, or the name of the command.
    fn method(&self) -> &str;

    /// The path and query, or the text of the command.
    fn target(&self) -> &str;

    /// True if it writes a Tenure record.
    fn is_write(&self) -> bool;

    /// A header.
    fn header(&self, name: &str) -> Option<&str> {
        let _ = name;
        None
    }
}
