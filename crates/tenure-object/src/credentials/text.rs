//! Text that becomes a part of a request. The client library panics if a header cannot hold it.

use std::io::Read;
use std::path::Path;

use super::FetchError;

/// The problem of a text that does not [fit](fits_header) a header, as the end of a sentence.
pub(crate) const FLAW: &str = "contains a line break, another control character or a character outside ASCII";

/// The problem of a text that [has](has_control) a control character.
pub(crate) const CONTROL: &str = "contains a line break or another control character";

/// True if the text contains a control character.
pub(crate) fn has_control(text: &str) -> bool {
    text.contains(char::is_control)
}

/// True if a header can hold the text.
pub(crate) fn fits_header(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The token in a file, without the line break at its end that many tools write. `variable` names the file.
pub(crate) fn read_token(path: &Path, variable: &str) -> Result<String, FetchError> {
    let file = format!("the file {} ({variable})", path.display());
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|opened| opened.take(TOKEN_MAX).read_to_string(&mut text))
        .map_err(|error| FetchError::denied(format!("{file} cannot be read: {error}")))?;
    let token = text.trim_end_matches(['\n', '\r']);
    if token.is_empty() {
        return Err(FetchError::denied(format!("{file} is empty")));
    }
    if !fits_header(token) {
        return Err(FetchError::denied(format!("{file} {FLAW}")));
    }
    Ok(token.to_owned())
}

/// Tokens have a few thousand bytes; the path may name a device that never ends.
const TOKEN_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Result<String, FetchError> {
        let path = std::env::temp_dir().join(format!("tenure-object-text-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let read = read_token(&path, "TOKEN_FILE");
        std::fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn a_token_ends_before_the_line_break_and_contains_none() {
        assert_eq!(token("hush\r\n").unwrap(), "hush");
        for (wrong, words) in [("hu\nsh", FLAW), ("hush\u{7}", FLAW), ("hüsh", FLAW), ("\n", "is empty")] {
            let error = token(wrong).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("(TOKEN_FILE)"), "{error}");
            assert!(!error.contains("sh\u{7}") && !error.contains("hu"), "{error}");
        }
    }
}
