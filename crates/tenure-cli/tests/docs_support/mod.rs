//! What the test of the documentation is made of: pages, the shell that executes them, and how output is compared.

pub(crate) mod configs;
pub(crate) mod links;
pub(crate) mod page;
pub(crate) mod pattern;
pub(crate) mod session;
