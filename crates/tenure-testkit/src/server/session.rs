//! Credentials that are given for a while.

/// Credentials for a while, with fewer rights than the server's own.
#[derive(Debug, Clone)]
pub struct Session {
    /// Their id.
    pub access_key: String,
    /// Their secret.
    pub secret_key: String,
    /// What has to be sent with them.
    pub token: String,
}

impl Session {
    /// Out of the answer of a server that gave them.
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

    /// The usual environment variables with them.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("AWS_ACCESS_KEY_ID", self.access_key.clone()),
            ("AWS_SECRET_ACCESS_KEY", self.secret_key.clone()),
            ("AWS_SESSION_TOKEN", self.token.clone()),
        ]
    }
}
