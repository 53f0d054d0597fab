//! Texts of users, made valid for a record.

/// The beginning of a text, of at most `max` bytes.
pub(crate) fn beginning(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// The text with spaces instead of control characters, of which each takes one byte or two.
pub(crate) fn on_one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
