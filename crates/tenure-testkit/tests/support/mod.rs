//! Helpers for the tests of the test kit: a plain client that sends exactly one request, signed or not, and a server
//! that records requests.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod client;
pub(crate) mod objects;
pub(crate) mod peer;
pub(crate) mod recorder;
pub(crate) mod world;
