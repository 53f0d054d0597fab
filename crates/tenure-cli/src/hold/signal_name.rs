use nix::sys::signal::Signal;

/// A signal as `kill` accepts it: TERM, SIGTERM or 15.
pub(crate) fn parse_signal(text: &str) -> Result<Signal, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let signal = match name.parse::<i32>() {
        Ok(number) => Signal::try_from(number),
        Err(_) => format!("SIG{name}").parse(),
    };
    signal.map_err(|_| "there is no such signal: write it like TERM, INT or 15".to_owned())
}

/// Its name without the prefix, for messages.
pub(super) fn name_of(signal: Signal) -> &'static str {
    signal.as_str().trim_start_matches("SIG")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_as_for_kill() {
        for text in ["TERM", "SIGTERM", "term", "15"] {
            assert_eq!(parse_signal(text).map(name_of), Ok("TERM"));
        }
        for text in ["", "0", "SIG", "TERMINATE", "-15", "9999"] {
            assert!(parse_signal(text).is_err(), "{text}");
        }
    }
}
