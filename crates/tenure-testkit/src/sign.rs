//! A signature of AWS, version 4, for one request without a query.

use std::fmt::Write;

use ring::{digest, hmac};

use crate::server::{ACCESS_KEY, REGION, SECRET_KEY};

/// The headers that a request needs. `host` is the address that the client connects to.
pub(crate) fn sign(host: &str, method: &str, path: &str, body: &str) -> Vec<(&'static str, String)> {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let (day, region) = (&now[..8], REGION);
    let hash = hex(digest::digest(&digest::SHA256, body.as_bytes()).as_ref());
    let names = "host;x-amz-content-sha256;x-amz-date";
    let canonical = format!(
        "{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{hash}\nx-amz-date:{now}\n\n{names}\n{hash}"
    );
    let scope = format!("{day}/{region}/s3/aws4_request");
    let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
    for part in [day, region, "s3", "aws4_request", &format!("AWS4-HMAC-SHA256\n{now}\n{scope}\n{canonical}")]
    {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    let (id, signature) = (ACCESS_KEY, hex(&key));
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    vec![("x-amz-date", now), ("x-amz-content-sha256", hash), ("authorization", authorization)]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        write!(all, "{byte:02x}").unwrap();
        all
    })
}
