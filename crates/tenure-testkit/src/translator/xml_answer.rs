//! Answers of the XML API.

use std::fmt::Write;

/// An answer of the XML API.
#[derive(Debug)]
pub(crate) struct XmlAnswer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content: Vec<u8>,
}

impl XmlAnswer {
    /// An answer without headers and content.
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), content: Vec::new() }
    }

    /// An error with this code.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        let (code, message) = (escaped(code), escaped(message));
        let text = format!(
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        );
        Self::new(status).content("application/xml; charset=UTF-8", text.into_bytes())
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    #[must_use]
    pub(crate) fn content(mut self, kind: &str, content: Vec<u8>) -> Self {
        self.content = content;
        self.header("Content-Type", kind)
    }

    /// The answer to a request with this method, as bytes. An answer to HEAD has the length of the content, but not the
    /// content.
    pub(crate) fn bytes(&self, method: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Translated\r\n", self.status);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").expect("a string takes everything");
        }
        if !matches!(self.status, 204 | 304) {
            write!(head, "Content-Length: {}\r\n", self.content.len()).expect("a string takes everything");
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        if method != "HEAD" && !matches!(self.status, 204 | 304) {
            bytes.extend_from_slice(&self.content);
        }
        bytes
    }
}

/// Text as it is in XML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
