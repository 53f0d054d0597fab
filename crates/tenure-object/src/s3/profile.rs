use std::collections::BTreeMap;
use std::path::PathBuf;

use super::credentials::Keys;
use crate::open::{Environment, OpenError};

/// The settings of one profile in the files of AWS's own tools.
#[derive(Default)]
pub(super) struct Profile {
    name: String,
    settings: BTreeMap<String, String>,
}

impl Profile {
    /// The profile with this name, or the one that the environment names, or `default` if it exists.
    pub(super) fn find(chosen: Option<&str>, environment: &Environment) -> Result<Option<Self>, OpenError> {
        let named = chosen.or_else(|| environment.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]));
        let name = named.unwrap_or("default");
        let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        // For a setting in both files the credentials file wins, as with AWS's own tools.
        let files = [
            ("AWS_CONFIG_FILE", "config", in_config.as_str()),
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
        ];
        let mut found = false;
        let mut settings = BTreeMap::new();
        for (variable, file, section) in files {
            let Some(path) = path(environment, variable, file) else { continue };
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(OpenError::denied(format!("{} cannot be read: {error}", path.display())));
                }
            };
            if let Some(there) = section_of(&text, section) {
                found = true;
                settings.extend(there);
            }
        }
        match named {
            Some(name) if !found => Err(OpenError::denied(format!(
                "there is no profile {name:?} in the files of AWS's tools: see aws configure list-profiles"
            ))),
            _ => Ok(found.then(|| Self { name: name.to_owned(), settings })),
        }
    }

    /// Its keys; `None` if the profile has no settings for credentials.
    pub(super) fn keys(&self) -> Result<Option<Keys>, OpenError> {
        let Self { name, .. } = self;
        match (self.get("aws_access_key_id"), self.get("aws_secret_access_key")) {
            (Some(id), Some(secret)) => {
                let token = self.get("aws_session_token").map(str::to_owned);
                let keys = Keys { id: id.to_owned(), secret: secret.to_owned(), token };
                let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]
                    .map(|setting| format!("{setting} of the profile {name:?}"));
                keys.check(names.each_ref().map(String::as_str))?;
                Ok(Some(keys))
            }
            (None, None) => match OTHER_CREDENTIALS.iter().find(|setting| self.get(setting).is_some()) {
                Some(setting) => Err(OpenError::denied(format!(
                    "the profile {name:?} has {setting}, which only AWS's own tools can use: export its credentials \
                     with eval \"$(aws configure export-credentials --profile {name} --format env)\""
                ))),
                None => Ok(None),
            },
            _ => Err(OpenError::denied(format!(
                "the profile {name:?} has only one half of a key: it takes aws_access_key_id and aws_secret_access_key"
            ))),
        }
    }

    pub(super) fn get(&self, setting: &str) -> Option<&str> {
        self.settings.get(setting).map(String::as_str)
    }
}

fn path(environment: &Environment, variable: &str, file: &str) -> Option<PathBuf> {
    match environment.get(variable) {
        Some(path) => Some(path.into()),
        None => Some(PathBuf::from(environment.get("HOME")?).join(".aws").join(file)),
    }
}

/// The settings of a section; `None` if there is no such section.
fn section_of(text: &str, wanted: &str) -> Option<BTreeMap<String, String>> {
    let mut here = false;
    let mut settings = None;
    for line in text.lines() {
        // An indented line belongs to the setting above it, such as s3 =.
        if line.starts_with([' ', '\t', '#', ';']) || line.trim().is_empty() {
            continue;
        }
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let name = section.0.split_whitespace().collect::<Vec<_>>().join(" ");
            here = name == wanted;
            if here {
                settings.get_or_insert_with(BTreeMap::new);
            }
        } else if let (true, Some((name, value))) = (here, line.split_once('=')) {
            let settings = settings.get_or_insert_with(BTreeMap::new);
            if !value.trim().is_empty() {
                settings.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
    }
    settings
}

/// Settings for credentials that need more than two lines of a file.
const OTHER_CREDENTIALS: &[&str] = &[
    "sso_session",
    "sso_start_url",
    "credential_process",
    "role_arn",
    "source_profile",
    "credential_source",
    "web_identity_token_file",
    "login_session",
];

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[default]\nregion = eu-west-1\ns3 =\n    addressing_style = path\n\
                        [profile  prod]\nrole_arn=arn:aws:iam::1:role/x\n[half]\naws_access_key_id = A\n";

    #[test]
    fn a_section_has_its_own_lines_and_no_others() {
        let section = section_of(FILE, "default").unwrap();
        assert_eq!(section.into_iter().collect::<Vec<_>>(), [("region".to_owned(), "eu-west-1".to_owned())]);
        assert!(section_of(FILE, "profile prod").unwrap().contains_key("role_arn"));
        assert!(section_of(FILE, "prod").is_none());
    }

    #[test]
    fn a_profile_that_needs_more_names_the_command_that_helps() {
        for setting in OTHER_CREDENTIALS {
            let settings = BTreeMap::from([((*setting).to_owned(), "x".to_owned())]);
            let error = Profile { name: "prod".into(), settings }.keys().unwrap_err();
            let sentence = error.to_string();
            assert!(sentence.contains("aws configure export-credentials --profile prod"), "{sentence}");
        }
    }

    #[test]
    fn half_a_key_is_no_key() {
        let profile = Profile { name: "half".into(), settings: section_of(FILE, "half").unwrap() };
        assert!(profile.keys().unwrap_err().to_string().contains("one half"));
    }
}
