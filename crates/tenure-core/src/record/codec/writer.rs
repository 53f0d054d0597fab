use std::fmt::Display;
use std::io::Write;

use super::time;
use crate::WallTime;

/// Writes compact JSON, member by member.
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Writes an object.
    pub(super) fn object(fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        // Large enough for most records, so that writing them needs one allocation.
        let mut writer = Self { bytes: Vec::with_capacity(1024) };
        writer.braces(fill);
        writer.bytes
    }

    /// Writes a text, escaped where necessary.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        self.string(text);
    }

    /// Writes a text of digits, letters and the like, which is never escaped.
    pub(super) fn plain(&mut self, name: &str, text: impl Display) {
        self.name(name);
        write!(self.bytes, "\"{text}\"").expect("a vector takes every write");
    }

    /// Writes a whole number.
    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        write!(self.bytes, "{number}").expect("a vector takes every write");
    }

    /// Writes bytes as lowercase hexadecimal.
    pub(super) fn hex(&mut self, name: &str, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.name(name);
        self.bytes.push(b'"');
        for byte in bytes {
            self.bytes.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self.bytes.push(b'"');
    }

    /// Writes an informational time.
    pub(super) fn time(&mut self, name: &str, time: WallTime) {
        self.plain(name, time::writable(time));
    }

    /// Writes an object inside this one.
    pub(super) fn nested(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        self.name(name);
        self.braces(fill);
    }

    /// Writes a list of objects.
    pub(super) fn list<T>(&mut self, name: &str, items: &[T], fill: impl Fn(&mut Self, &T)) {
        self.name(name);
        self.bytes.push(b'[');
        for item in items {
            self.comma();
            self.braces(|writer| fill(writer, item));
        }
        self.bytes.push(b']');
    }

    /// Writes a list of names of letters, which are never escaped.
    pub(super) fn names(&mut self, name: &str, items: &[&str]) {
        self.name(name);
        self.bytes.push(b'[');
        for item in items {
            self.comma();
            write!(self.bytes, "\"{item}\"").expect("a vector takes every write");
        }
        self.bytes.push(b']');
    }

    /// Writes JSON as it is.
    pub(super) fn verbatim(&mut self, name: &str, json: &str) {
        self.name(name);
        self.bytes.extend_from_slice(json.as_bytes());
    }

    fn name(&mut self, name: &str) {
        self.comma();
        self.string(name);
        self.bytes.push(b':');
    }

    fn string(&mut self, text: &str) {
        serde_json::to_writer(&mut self.bytes, text).expect("a vector takes every write");
    }

    fn braces(&mut self, fill: impl FnOnce(&mut Self)) {
        self.bytes.push(b'{');
        fill(self);
        self.bytes.push(b'}');
    }

    /// Writes the comma before every item but the first. No value ends with an opening brace or bracket, so one of
    /// those as the last byte means that this item is the first.
    fn comma(&mut self) {
        if !matches!(self.bytes.last(), Some(b'{' | b'[')) {
            self.bytes.push(b',');
        }
    }
}
