//! Requests of the XML API, and how the JSON API answers them.

use std::fmt::Write;
use std::io;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::checksum::crc32c;
use super::json_api::{JsonApi, escaped};
use super::xml_answer::{self, XmlAnswer};
use crate::proxy::HttpRequest;

/// A request of the XML API.
pub(crate) struct XmlRequest<'a> {
    request: &'a HttpRequest,
    token: &'a str,
    /// With escapes.
    bucket: String,
    /// With escapes; empty in a request for the bucket itself.
    key: String,
    /// Without escapes.
    parameters: Vec<(String, String)>,
}

impl<'a> XmlRequest<'a> {
    pub(crate) fn new(request: &'a HttpRequest, token: &'a str) -> Self {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let again = |part: &str| escaped(&percent_decode_str(part).collect::<Vec<_>>());
        let text = |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let parameters = pairs.map(|(name, value)| (text(name), text(value))).collect();
        Self { request, token, bucket: again(bucket), key: again(key), parameters }
    }

    /// The answer of the server, or an error if there is none.
    pub(crate) async fn answer(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let answer = self.translated(api).await?;
        // The server's own time, if it has answered.
        let date = api.date.take().unwrap_or_else(|| http_date(Timestamp::now()));
        Ok(answer.header("Date", date))
    }

    async fn translated(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let method = self.request.method.as_str();
        if self.request.header("authorization") != Some(&format!("Bearer {}", self.token)) {
            return Ok(XmlAnswer::error(401, "AuthenticationRequired", "Authentication required."));
        }
        // A condition or an operation that is not passed on must not seem to work.
        let permitted = match method {
            "PUT" => GENERATION_MATCH,
            "GET" | "HEAD" => "if-none-match",
            _ => "",
        };
        let mut others = CONDITIONS.iter().filter(|name| **name != permitted);
        if self.request.header("x-goog-copy-source").is_some()
            || self.request.header("transfer-encoding").is_some()
            || self.parameters.iter().any(|(name, _)| !PARAMETERS.contains(&name.as_str()))
            || others.any(|name| self.request.header(name).is_some())
        {
            return Ok(not_translated());
        }
        match method {
            "PUT" if !self.key.is_empty() => self.put(api).await,
            "GET" | "HEAD" if !self.key.is_empty() => self.get(api).await,
            "DELETE" if !self.key.is_empty() => self.delete(api).await,
            "GET" if !self.bucket.is_empty() => self.list(api).await,
            _ => Ok(not_translated()),
        }
    }

    async fn put(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let mut target = format!("/upload/storage/v1/b/{}/o?uploadType=media&name={}", self.bucket, self.key);
        if let Some(generation) = self.request.header(GENERATION_MATCH) {
            target += &format!("&ifGenerationMatch={}", escaped(generation.as_bytes()));
        }
        let answer = api.ask("POST", &target, self.request.content()).await?;
        match answer.status {
            200 => Ok(attributes(XmlAnswer::new(200), &parsed(answer.content())?)),
            404 => Ok(no_such_bucket()),
            412 => Ok(XmlAnswer::error(
                412,
                "PreconditionFailed",
                "At least one of the pre-conditions you specified did not hold.",
            )),
            status => Ok(other(status, answer.content())),
        }
    }

    /// Attributes and content come in two answers, and a server with files reads the two apart even for one. The
    /// checksum shows whether they belong together; if not, a write came in between, and they are read again.
    async fn get(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let object = format!("/storage/v1/b/{}/o/{}", self.bucket, self.key);
        for _ in 0..READS {
            let answer = api.ask("GET", &object, b"").await?;
            let about = match answer.status {
                200 => parsed(answer.content())?,
                404 => return self.absent(api).await,
                status => return Ok(other(status, answer.content())),
            };
            let modified = about["updated"].as_str().and_then(|time| time.parse().ok());
            let modified = modified.ok_or_else(|| io::Error::other(format!("no time of change: {about}")))?;
            let head = |status| {
                attributes(XmlAnswer::new(status), &about).header("Last-Modified", http_date(modified))
            };
            let known = self.request.header("if-none-match");
            if known.is_some_and(|known| known == "*" || known == etag(&about)) {
                return Ok(head(304));
            }
            // A server that is writing may announce a length that it does not send.
            let Ok(media) = api.ask("GET", &format!("{object}?alt=media"), b"").await else { continue };
            if media.status == 200 && about["crc32c"].as_str() == Some(&crc32c(media.content())) {
                return Ok(head(200).content("application/octet-stream", media.content().to_vec()));
            }
        }
        Ok(XmlAnswer::error(503, "ServiceUnavailable", "The object changed during every read."))
    }

    async fn delete(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let answer = api.ask("DELETE", &format!("/storage/v1/b/{}/o/{}", self.bucket, self.key), b"").await?;
        match answer.status {
            200 | 204 => Ok(XmlAnswer::new(204)),
            404 => self.absent(api).await,
            status => Ok(other(status, answer.content())),
        }
    }

    async fn list(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let limit = self.parameter("max-keys").unwrap_or(PAGE);
        let mut target = format!("/storage/v1/b/{}/o?maxResults={}", self.bucket, escaped(limit.as_bytes()));
        for (name, theirs) in
            [("prefix", "prefix"), ("delimiter", "delimiter"), ("continuation-token", "pageToken")]
        {
            if let Some(value) = self.parameter(name) {
                target += &format!("&{theirs}={}", escaped(value.as_bytes()));
            }
        }
        if let Some(last) = self.parameter("start-after") {
            // The offset is the first name, not the last one before it.
            target += &format!("&startOffset={}%00", escaped(last.as_bytes()));
        }
        let answer = api.ask("GET", &target, b"").await?;
        match answer.status {
            200 => Ok(listing(&parsed(answer.content())?)),
            404 => Ok(no_such_bucket()),
            status => Ok(other(status, answer.content())),
        }
    }

    /// Answers for an object that does not exist: the bucket may not exist either.
    async fn absent(&self, api: &mut JsonApi) -> io::Result<XmlAnswer> {
        let bucket = api.ask("GET", &format!("/storage/v1/b/{}", self.bucket), b"").await?;
        Ok(match bucket.status {
            404 => no_such_bucket(),
            _ => XmlAnswer::error(404, "NoSuchKey", "The specified key does not exist."),
        })
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }
}

fn listing(list: &Value) -> XmlAnswer {
    let objects = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prefixes = list["prefixes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let next = list["nextPageToken"].as_str().filter(|next| !next.is_empty());
    let text = |value: &Value| xml_answer::escaped(value.as_str().unwrap_or_default());
    let mut xml = "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>".to_owned();
    let mut add = |part: std::fmt::Arguments<'_>| xml.write_fmt(part).expect("a string takes everything");
    add(format_args!("<KeyCount>{}</KeyCount><IsTruncated>{}</IsTruncated>", objects.len(), next.is_some()));
    if let Some(next) = next {
        add(format_args!("<NextContinuationToken>{}</NextContinuationToken>", xml_answer::escaped(next)));
    }
    for object in objects {
        add(format_args!(
            "<Contents><Key>{}</Key><Generation>{}</Generation><LastModified>{}</LastModified><ETag>{}</ETag>\
             <Size>{}</Size></Contents>",
            text(&object["name"]),
            text(&object["generation"]),
            text(&object["updated"]),
            xml_answer::escaped(&etag(object)),
            text(&object["size"]),
        ));
    }
    for prefix in prefixes {
        add(format_args!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", text(prefix)));
    }
    add(format_args!("</ListBucketResult>"));
    XmlAnswer::new(200).content("application/xml; charset=UTF-8", xml.into_bytes())
}

/// The headers that every answer about an object has.
fn attributes(answer: XmlAnswer, about: &Value) -> XmlAnswer {
    let generation = about["generation"].as_str().unwrap_or_default();
    answer.header("ETag", etag(about)).header("x-goog-generation", generation)
}

fn etag(about: &Value) -> String {
    format!("\"{}\"", about["etag"].as_str().unwrap_or_default())
}

fn no_such_bucket() -> XmlAnswer {
    XmlAnswer::error(404, "NoSuchBucket", "The specified bucket does not exist.")
}

fn not_translated() -> XmlAnswer {
    XmlAnswer::error(501, "NotImplemented", "The translator of the tests does not know this request.")
}

/// An unexpected answer of the server.
fn other(status: u16, content: &[u8]) -> XmlAnswer {
    let code = if status < 500 { "InvalidArgument" } else { "InternalError" };
    XmlAnswer::error(status, code, &String::from_utf8_lossy(content))
}

fn parsed(content: &[u8]) -> io::Result<Value> {
    serde_json::from_slice(content).map_err(io::Error::other)
}

fn http_date(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The condition of writes.
const GENERATION_MATCH: &str = "x-goog-if-generation-match";

/// All conditions of Google.
const CONDITIONS: [&str; 6] = [
    GENERATION_MATCH,
    "x-goog-if-metageneration-match",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];

/// The parameters of listings.
const PARAMETERS: [&str; 6] =
    ["list-type", "prefix", "delimiter", "continuation-token", "max-keys", "start-after"];

/// Google's largest page.
const PAGE: &str = "1000";

/// Attempts to read an object while others write it.
const READS: usize = 50;
