//! AWS signature, version 4.

use std::fmt::Write;

use ring::{digest, hmac};

/// Credentials and scope of a signature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signer<'a> {
    pub(crate) access_key: &'a str,
    pub(crate) secret_key: &'a str,
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
}

impl Signer<'_> {
    /// The headers to add to such a request. The request's own headers are signed, too; their names must be in lower
    /// case.
    pub(crate) fn sign(
        &self,
        host: &str,
        (method, target): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<(&'static str, String)> {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
        let mut signed = vec![("host", host), ("x-amz-content-sha256", &hash), ("x-amz-date", &now)];
        signed.extend_from_slice(headers);
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines =
            signed.iter().fold(String::new(), |all, (name, value)| all + &format!("{name}:{value}\n"));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        // A parameter without a value is signed with an empty one.
        let query =
            if query.is_empty() || query.contains('=') { query.to_owned() } else { format!("{query}=") };
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{hash}");
        let (day, Self { region, service, access_key, .. }) = (&now[..8], self);
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let mut key = format!("AWS4{}", self.secret_key).into_bytes();
        let last = format!("AWS4-HMAC-SHA256\n{now}\n{scope}\n{canonical}");
        for part in [day, region, service, "aws4_request", &last] {
            key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
        }
        let signature = hex(&key);
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        vec![
            ("x-amz-date", now.clone()),
            ("x-amz-content-sha256", hash.clone()),
            ("authorization", authorization),
        ]
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        write!(all, "{byte:02x}").expect("a string takes everything");
        all
    })
}
