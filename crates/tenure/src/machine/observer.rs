use std::sync::Arc;

use super::{Content, Rules, Standard};
use crate::record::{Record, Token};

/// Looks at a key from outside and shows what it sees, never an older token after a newer one.
#[derive(Debug)]
pub struct Observer {
    rules: &'static dyn Rules,
    shown: Token,
}

impl Observer {
    /// An observer that has shown nothing.
    pub fn new() -> Self {
        Self::with_rules(&Standard)
    }

    /// An observer under other rules, for the simulation.
    pub fn with_rules(rules: &'static dyn Rules) -> Self {
        Self { rules, shown: Token::ZERO }
    }

    /// What may be shown of this content: `None` if it is older than what was shown before.
    pub fn show(&mut self, content: &Content) -> Option<Arc<Record>> {
        let Content::Record(record, _) = content else { return None };
        if !self.rules.may_show(self.shown, record.token) {
            return None;
        }
        self.shown = record.token;
        Some(Arc::clone(record))
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}
