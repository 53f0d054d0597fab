use std::fmt;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use tenure::Error;
use tenure_object::S3;
use tenure_object::S3Builder;
use tenure_store::{Guarantees, Store, StoreError};

use crate::UrlError;

/// A bucket, and the way to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct S3Place(Box<S3Builder>);

impl S3Place {
    /// Parses the part after `s3:`. Errors never repeat it: it may contain a secret.
    pub(crate) fn parse(rest: &str) -> Result<Self, UrlError> {
        let Some(rest) = rest.strip_prefix("//") else {
            return Err(UrlError::new(format!("s3: lacks two slashes: write it like {EXAMPLE}")));
        };
        if rest.contains('#') {
            return Err(UrlError::new(
                "the URL of a store cannot have a part after '#': write %23 where it belongs to the prefix",
            ));
        }
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.contains('@') {
            return Err(UrlError::new(format!(
                "the URL of a store carries no credentials: put them into AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY, or a profile, and write it like {EXAMPLE}"
            )));
        }
        if bucket.is_empty() {
            return Err(UrlError::new(format!("s3:// names no bucket: write it like {EXAMPLE}")));
        }
        let prefix = decode(prefix.strip_suffix('/').unwrap_or(prefix))?;
        let mut builder = S3::builder(bucket).prefix(&prefix);
        let mut seen = Vec::new();
        for option in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            // Each risk is accepted by its own name.
            if seen.contains(&name) && name != "accept" {
                return Err(UrlError::new(format!("a bucket has one {name}, and this URL says it twice")));
            }
            seen.push(name);
            builder = accept(builder, name, &decode(value)?)?;
        }
        builder.check().map_err(|error| UrlError::new(error.to_string()))?;
        Ok(Self(Box::new(builder)))
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, Error> {
        let store = self.0.open().map_err(StoreError::from)?;
        Ok(Arc::new(store))
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.0.store_name().is_ok_and(|called| called == name)
    }

    pub(crate) fn identity(&self) -> Option<String> {
        self.0.store_name().ok()
    }

    pub(crate) fn resolved(&self) -> Option<Self> {
        self.0.resolved().ok().map(|builder| Self(Box::new(builder)))
    }

    pub(crate) fn provider(&self) -> Result<Option<&'static str>, Error> {
        Ok(self.0.open().map_err(StoreError::from)?.offered_by())
    }

    pub(crate) fn with_other_etags(&self) -> (Self, bool) {
        let (builder, bare) = (*self.0).clone().with_other_etags();
        (Self(Box::new(builder)), bare)
    }

    /// Needs no credentials, and does not read the endpoint from the environment.
    pub(crate) fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }
}

fn accept(builder: S3Builder, name: &str, value: &str) -> Result<S3Builder, UrlError> {
    match (name, value) {
        ("endpoint", url) => Ok(builder.endpoint(url)),
        ("region", region) => Ok(builder.region(region)),
        ("path-style", "true") => Ok(builder.path_style(true)),
        ("path-style", "false") => Ok(builder.path_style(false)),
        ("path-style", _) => Err(UrlError::new("path-style is true or false")),
        ("etags", "bare") => Ok(builder.bare_etags()),
        ("etags", _) => {
            Err(UrlError::new("etags can only be bare, for servers that require ETags without quotes"))
        }
        ("profile", profile) => Ok(builder.profile(profile)),
        ("credentials", "instance") => Ok(builder.instance_credentials()),
        ("credentials", _) => Err(UrlError::new(
            "credentials can only be instance, for those of the machine; all others come from the environment and from profiles",
        )),
        ("ca", path) => Ok(builder.ca(path)),
        ("proxy", url) => Ok(builder.proxy(url)),
        ("accept", "http") => Ok(builder.accept_http()),
        ("accept", "server-clock") => Ok(builder.accept_server_clock()),
        ("accept", _) => Err(UrlError::new(
            "accept can be http, for an endpoint that is not encrypted, or server-clock, for ages by the server's wall \
             clock",
        )),
        (name, _) => Err(UrlError::new(format!(
            "a bucket has no option {name:?}: it has endpoint, region, path-style, etags, profile, credentials, ca, \
             proxy and accept, as in {EXAMPLE}?region=eu-west-1"
        ))),
    }
}

fn decode(text: &str) -> Result<String, UrlError> {
    let broken = text.match_indices('%').any(|(at, _)| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if broken {
        return Err(UrlError::new("the URL has a '%' without two hexadecimal digits: write %25 for itself"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| UrlError::new("the URL has bytes that are not valid UTF-8"))
}

impl fmt::Display for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const EXAMPLE: &str = "s3://my-bucket/locks";
