use percent_encoding::percent_decode_str;

use crate::UrlError;

/// Decodes a part of a URL. The error never repeats it: it may contain a secret.
pub(crate) fn decode(text: &str) -> Result<String, UrlError> {
    let broken = text.match_indices('%').any(|(at, _)| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if broken {
        return Err(UrlError::new("the URL has a '%' without two hexadecimal digits: write %25 for itself"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| UrlError::new("the URL has bytes in it that are no text in UTF-8"))
}
