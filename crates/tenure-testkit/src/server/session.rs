//! Temporary credentials.

/// Temporary credentials, with fewer rights than those of the server.
#[derive(Debug, Clone)]
pub struct Session {
    /// The id.
    pub access_key: String,
    /// The secret.
    pub secret_key: String,
    /// The token to send with them.
    pub token: String,
}

impl Session {
    /// Parses the answer of the server that issued them.
    pub(crate) fn parse(answer: &str) -> Option<Self> {
        let element = |name: &str| {
            let (_, rest) = answer.split_once(&format!("<{name}>"))?;
            Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
        };
        Some(Self {
            access_key: element("AccessKeyId")?,
            secret_key: element("SecretAccessKey")?,
            token: element("SessionToken")?,
        })
    }

    /// The usual environment variables with these credentials.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("AWS_ACCESS_KEY_ID", self.access_key.clone()),
            ("AWS_SECRET_ACCESS_KEY", self.secret_key.clone()),
            ("AWS_SESSION_TOKEN", self.token.clone()),
        ]
    }
}
