//! The service files of PostgreSQL: named groups of parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Environment, OpenError};

/// Reads the parameters of a service, from the user's file or the machine's.
pub(crate) fn read(service: &str, environment: &Environment) -> Result<BTreeMap<String, String>, OpenError> {
    let own = match environment.get("PGSERVICEFILE") {
        Some(path) => Some(PathBuf::from(path)),
        None => environment.home(".pg_service.conf"),
    };
    let directory = environment.get("PGSYSCONFDIR").unwrap_or("/etc/postgresql-common");
    let files = [own, Some(PathBuf::from(directory).join("pg_service.conf"))];
    for path in files.into_iter().flatten() {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                let path = path.display();
                return Err(OpenError::invalid(format!("the service file {path} cannot be read: {error}")));
            }
        };
        if let Some(parameters) = find(&text, service) {
            return Ok(parameters);
        }
    }
    Err(OpenError::invalid(format!(
        "there is no service {service:?}: add it to ~/.pg_service.conf, or to the file that PGSERVICEFILE names"
    )))
}

/// The parameters in the section of this name.
fn find(text: &str, service: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if found.is_some() {
                break;
            }
            found = (name == service).then(BTreeMap::new);
        } else if let (Some(found), Some((name, value))) = (&mut found, line.split_once('=')) {
            found.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_the_parameters_of_its_section_and_no_other() {
        let text = "# comment\n[a]\nhost=one\n\n[b]\nhost = two\nport=6432\ndbname=x=y\n[c]\nuser=u\n";
        let found = find(text, "b").unwrap();
        let pairs: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("dbname", "x=y"), ("host", "two"), ("port", "6432")]);
        assert_eq!(find(text, "d"), None);
    }
}
