//! The password file of PostgreSQL: `host:port:database:user:password` on each line.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Host, OpenError};

/// Reads the password for this host; `None` if the file does not exist or has no line for it.
pub(crate) fn read(
    path: &Path,
    host: &Host,
    database: &str,
    user: &str,
) -> Result<Option<String>, OpenError> {
    let shown = path.display();
    let text = match std::fs::metadata(path).and_then(|about| Ok((about, std::fs::read_to_string(path)?))) {
        Ok((about, _)) if about.permissions().mode() & 0o077 != 0 => {
            return Err(OpenError::denied(format!(
                "other users have access to the password file {shown}, so Tenure does not use it: run chmod 600 {shown}"
            )));
        }
        Ok((_, text)) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(OpenError::denied(format!("the password file {shown} cannot be read: {error}")));
        }
    };
    // A socket in the usual directory counts as localhost.
    let name = if USUAL_SOCKETS.contains(&host.name.as_str()) { "localhost" } else { &host.name };
    Ok(find(&text, [name, &host.port.to_string(), database, user]))
}

/// The directories in which PostgreSQL's own tools search for a socket.
pub(crate) const USUAL_SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The password on the first line that fits.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [first @ .., password] = fields.as_slice() else { return None };
        let fits = first.len() == wanted.len()
            && first.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then(|| password.clone())
    })
}

/// The fields of a line. A backslash escapes a colon or a backslash, and the password may contain colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(next) = characters.next() {
        match next {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().expect("there is one").extend(characters.next()),
            next => fields.last_mut().expect("there is one").push(next),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# comment\nother:5432:*:*:no\ndb:5432:app:me:s\\:e\\\\cret:end\n*:*:*:*:fallback\n";
        assert_eq!(find(text, ["db", "5432", "app", "me"]).unwrap(), "s:e\\cret:end");
        assert_eq!(find(text, ["db", "5432", "app", "you"]).unwrap(), "fallback");
        assert_eq!(find("a:b\n", ["a", "b", "c", "d"]), None);
    }
}
