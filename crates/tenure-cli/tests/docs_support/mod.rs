//! Parts of the documentation test: pages, the shell that executes them, and the comparison of output.

pub(crate) mod configs;
pub(crate) mod links;
pub(crate) mod page;
pub(crate) mod pattern;
pub(crate) mod session;
