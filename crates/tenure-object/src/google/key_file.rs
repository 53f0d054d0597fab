//! Credentials in Google's JSON format.

use std::io::Read;

use serde_json::Value;

use super::federation::FederationSettings;

/// Kind of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// A service account key: it signs tokens without a request.
    ServiceAccount,
    /// The login of a user, by `gcloud auth application-default login`.
    User,
    /// The identity that another platform gives this program.
    Federation(FederationSettings),
}

/// Reads a file of credentials. The error is a sentence, and `name` is its subject.
pub(super) fn read(path: &str, name: &str) -> Result<String, String> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|opened| opened.take(FILE_MAX).read_to_string(&mut text))
        .map_err(|error| format!("{name} cannot be read: {error}"))?;
    Ok(text)
}

/// The kind of these credentials, if they are complete. The error is a sentence, and repeats no value.
pub(super) fn kind_of(text: &str, name: &str) -> Result<KeyKind, String> {
    let not_known = || format!("{name} does not contain credentials in Google's JSON format");
    let document: Value = serde_json::from_str(text).map_err(|_| not_known())?;
    let field = |field: &str| document.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (kind, fields) = match field("type") {
        Some("service_account") => (KeyKind::ServiceAccount, KEY_FIELDS),
        None if field("private_key").is_some() => (KeyKind::ServiceAccount, KEY_FIELDS),
        Some("authorized_user") => (KeyKind::User, USER_FIELDS),
        Some("external_account") => {
            return FederationSettings::parse(&document, name).map(KeyKind::Federation);
        }
        Some(other) if OTHERS.contains(&other) => {
            return Err(format!(
                "{name} contains credentials of the type {other}, which Tenure does not support: use a service account \
                 key, or an access token in GOOGLE_OAUTH_ACCESS_TOKEN, or those of the machine with \
                 credentials=instance in the URL"
            ));
        }
        _ => return Err(not_known()),
    };
    match fields.iter().find(|name| field(name).is_none()) {
        Some(missing) => Err(format!("{name} has no {missing}: download the complete file again")),
        None => Ok(kind),
    }
}

const KEY_FIELDS: [&str; 3] = ["client_email", "private_key_id", "private_key"];

const USER_FIELDS: [&str; 3] = ["client_id", "client_secret", "refresh_token"];

/// The types of Google's own tools that are not supported here.
const OTHERS: [&str; 3] =
    ["external_account_authorized_user", "impersonated_service_account", "gdch_service_account"];

/// Such files have a few thousand bytes; the path may name a device that never ends.
const FILE_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_type_and_their_fields() {
        let kind = |text: &str| kind_of(text, "the key").map_err(|error| error.clone());
        let key =
            r#"{"type":"service_account","client_email":"me@x","private_key_id":"1","private_key":"hush"}"#;
        assert_eq!(kind(key), Ok(KeyKind::ServiceAccount));
        assert_eq!(kind(&key.replace(r#""type":"service_account","#, "")), Ok(KeyKind::ServiceAccount));
        let user =
            r#"{"type":"authorized_user","client_id":"1","client_secret":"hush","refresh_token":"hush"}"#;
        assert_eq!(kind(user), Ok(KeyKind::User));
        for (text, part) in [
            ("", "not contain credentials in Google's JSON format"),
            ("\"hush\"", "not contain credentials"),
            ("{\"a\":\"hush\"}", "not contain credentials"),
            (&key.replace("me@x", ""), "has no client_email"),
            (&user.replace("refresh_token", "x"), "has no refresh_token"),
            (r#"{"type":"external_account","audience":"hush"}"#, "needs a file or a url"),
            (r#"{"type":"impersonated_service_account","a":"hush"}"#, "which Tenure does not support"),
            (r#"{"type":"hush"}"#, "not contain credentials"),
        ] {
            let error = kind(text).unwrap_err();
            assert!(error.starts_with("the key ") && error.contains(part), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
